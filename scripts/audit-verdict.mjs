// What an answer of `npm audit --json` means. npm exits with 1 for everything that is not well, so that only its output
// tells apart what was found from what could not be asked.
//
//   clean        the registry has been asked, and knows of nothing that matters
//   vulnerable   it knows of something: the build must fail
//   unanswered   the registry offers no audit, or cannot be reached: nobody knows, which is no reason to fail a build
//   broken       npm could not even ask (no lockfile, a wrong option): the build must fail

const SEVERE = ["high", "critical"];

export function auditVerdict(output) {
  const answer = parsed(output);
  if (answer === null) return { kind: "broken", message: `no JSON: ${firstLine(output)}` };
  const counts = answer.auditReportVersion === undefined ? null : answer.metadata?.vulnerabilities;
  if (typeof counts === "object" && counts !== null) return verdictOn(answer.vulnerabilities ?? {}, counts);
  if (answer.error?.code !== undefined)
    return { kind: "broken", message: `${answer.error.code}: ${answer.error.summary}` };
  if (typeof answer.message === "string") return { kind: "unanswered", message: withoutAddress(answer.message) };
  return { kind: "broken", message: `neither a report nor an error: ${firstLine(output)}` };
}

/** npm's exit code is not asked: it depends on an option that this decision must not hang on. */
function verdictOn(vulnerabilities, counts) {
  const severe = SEVERE.reduce((sum, severity) => sum + (counts[severity] ?? 0), 0);
  if (severe === 0)
    return { kind: "clean", message: `${counts.total ?? 0} known, none of them ${SEVERE.join(" or ")}` };
  const found = Object.values(vulnerabilities).filter(({ severity }) => SEVERE.includes(severity));
  return { kind: "vulnerable", message: found.map(({ name, severity }) => `${name} (${severity})`).join(", ") };
}

function parsed(output) {
  try {
    const answer = JSON.parse(output);
    return typeof answer === "object" ? answer : null;
  } catch {
    return null;
  }
}

function firstLine(output) {
  return output.trim().split("\n")[0]?.slice(0, 200) || "nothing at all";
}

/** Which registry it is, is nobody's business. */
function withoutAddress(message) {
  return message.replaceAll(/https?:\/\/\S+/g, "the registry");
}
