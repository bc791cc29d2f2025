// scripts/number-of.mjs — a number that a command was given.

/** @throws Error that names the flag */
export function numberOf(name, text, least = 0) {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < least)
    throw new Error(`--${name} must be a number from ${least} up, not '${text}'`);
  return number;
}
