import { describe, expect, test } from "vitest";
import { InvalidOptionsError } from "../src/errors.js";
import {
  checkOptions,
  integerBetween,
  isBoolean,
  isFunction,
  isObject,
  isString,
  type OptionCheck,
  oneOf,
} from "../src/options.js";

const fields = {
  lockTimeoutMs: integerBetween(1, 60_000),
  durability: oneOf("full", "process-crash"),
  onFact: isFunction,
  label: isString,
  verbose: isBoolean,
  clock: isObject,
};

function refusal(given: unknown, allowed: Readonly<Record<string, OptionCheck>> = fields): string {
  try {
    checkOptions("Thing.open", given, allowed);
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidOptionsError);
    return (error as Error).message;
  }
  throw new Error("the options were accepted");
}

describe("good options", () => {
  test("pass, whether all, some or none are given", () => {
    checkOptions("Thing.open", undefined, fields);
    checkOptions("Thing.open", {}, fields);
    checkOptions("Thing.open", { lockTimeoutMs: 60_000, durability: "full", onFact: () => {} }, fields);
    checkOptions("Thing.open", { label: "", verbose: false, clock: {} }, fields);
  });

  test("may be undefined, even under a name that does not exist", () => {
    checkOptions("Thing.open", { lockTimeoutMs: undefined, nonsense: undefined }, fields);
  });
});

describe("an unknown option", () => {
  test.each([
    ["lockTimoutMs", "lockTimeoutMs"],
    ["locktimeoutms", "lockTimeoutMs"],
    ["lockTimeout", "lockTimeoutMs"],
    ["durable", "durability"],
    ["verbos", "verbose"],
  ])("'%s' is refused with the nearest right name, '%s'", (given, nearest) => {
    expect(refusal({ [given]: 1 })).toBe(`Thing.open: unknown option '${given}'. Did you mean '${nearest}'?`);
  });

  test("that resembles none is refused with the whole list", () => {
    expect(refusal({ quux: 1 })).toBe(
      "Thing.open: unknown option 'quux'. The options are: lockTimeoutMs, durability, onFact, label, verbose, clock.",
    );
  });

  test("is refused where there are no options at all", () => {
    expect(refusal({ quux: 1 }, {})).toBe("Thing.open: unknown option 'quux'; there are none.");
  });

  test("is not mistaken for what every object inherits", () => {
    expect(refusal({ toString: 1 })).toContain("unknown option 'toString'");
    expect(refusal(JSON.parse('{"__proto__": 1}'))).toContain("unknown option '__proto__'");
  });
});

describe("a wrong value", () => {
  test.each<[Record<string, unknown>, string]>([
    [{ lockTimeoutMs: 0 }, "option 'lockTimeoutMs' must be an integer from 1 to 60000, not 0."],
    [{ lockTimeoutMs: 60_001 }, "option 'lockTimeoutMs' must be an integer from 1 to 60000, not 60001."],
    [{ lockTimeoutMs: 1.5 }, "option 'lockTimeoutMs' must be an integer from 1 to 60000, not 1.5."],
    [{ lockTimeoutMs: Number.NaN }, "option 'lockTimeoutMs' must be an integer from 1 to 60000, not NaN."],
    [{ lockTimeoutMs: "5" }, `option 'lockTimeoutMs' must be an integer from 1 to 60000, not "5".`],
    [{ lockTimeoutMs: null }, "option 'lockTimeoutMs' must be an integer from 1 to 60000, not null."],
    [{ durability: "none" }, `option 'durability' must be "full" or "process-crash", not "none".`],
    [{ onFact: {} }, "option 'onFact' must be a function, not an object."],
    [{ label: Symbol("x") }, "option 'label' must be a string, not a symbol."],
    [{ verbose: 1 }, "option 'verbose' must be true or false, not 1."],
    [{ clock: [] }, "option 'clock' must be an object, not an array."],
    [{ clock: () => {} }, "option 'clock' must be an object, not a function."],
  ])("%o is refused, and told why", (given, message) => {
    expect(refusal(given)).toBe(`Thing.open: ${message}`);
  });

  test("in place of the options themselves is refused", () => {
    expect(refusal(null)).toBe("Thing.open: the options must be an object, not null.");
    expect(refusal("file.db")).toBe(`Thing.open: the options must be an object, not "file.db".`);
    expect(refusal([])).toBe("Thing.open: the options must be an object, not an array.");
  });
});
