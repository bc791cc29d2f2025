// providers/postgres/driver-errors.ts — what the server and the driver say, in the words of the contract.
//
//   E1. `transient` is what may succeed later without anybody's doing: networks, restarts, crowds. What stays wrong until
//       somebody acts is `invalid`, and the message says how to act.
//   E2. What is not known: with an SQLSTATE `invalid`, as the server has understood us and refuses; without one
//       `transient`, as somewhere between us and the server something broke.
//   E3. No message shows a password. The driver's own error is the `cause`.

import { messageOf, ProviderError, type ProviderErrorKind } from "../../errors.js";
import { quoteIdentifier } from "./options.js";

/** What messages name: where we were connected to, and how. */
export interface ErrorContext {
  /** `host:port/database` */
  readonly label: string;
  readonly database: string;
  readonly user: string;
  readonly schema: string;
  readonly quotedSchema: string;
  readonly isPasswordAsked: boolean;
  readonly maxConnections: number;
  readonly connectTimeoutMs: number;
  readonly statementTimeoutMs: number;
}

/** The function that was to bring a password did not. */
export class PasswordFunctionError extends Error {
  override readonly name = "PasswordFunctionError";
}

/** The server asks for a password, and nobody has given one. */
export class PasswordMissingError extends Error {
  override readonly name = "PasswordMissingError";
}

/** A statement was sent, and no answer came in time: whether it took effect is not known. */
export class NoAnswerError extends Error {
  override readonly name = "NoAnswerError";
  constructor(readonly waitedMs: number) {
    super(`no answer within ${waitedMs} ms`);
  }
}

// What the driver says. It has no codes for these.
const NO_TLS = "The server does not support SSL connections";
const POOL_IS_BUSY = "timeout exceeded when trying to connect";
const CONNECT_TIMEOUTS = ["Connection terminated due to connection timeout", "timeout expired"];
const NOT_SENT = [
  "Client has encountered a connection error and is not queryable",
  "Client was closed and is not queryable",
];

const READ_ONLY = "25006";

/** The five characters by which the server tells what is wrong; of an error of ours, those of its cause. Null: none. */
export function sqlStateOf(error: unknown): string | null {
  const { code, severity } = fieldsOf(rawOf(error));
  // EPIPE has five capital letters too; only the server's errors have a severity.
  return typeof severity === "string" && typeof code === "string" && /^[\dA-Z]{5}$/.test(code) ? code : null;
}

/**
 * Whether the connection is over, or in a state that nobody knows, or leads to where nothing can be written any more: another
 * one may lead to the new primary. A server that speaks no English is not trusted.
 */
export function isFatal(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state === null || state === READ_ONLY || fieldsOf(error).severity !== "ERROR";
}

/** As whoever has called this operation is told of it. */
export function inOperation(operation: string, error: unknown): unknown {
  if (!(error instanceof ProviderError)) return error;
  const text = error.message.slice(`${error.operation}: `.length);
  return new ProviderError(error.kind, operation, text, { cause: error.cause });
}

/** Whether it was the server that refused: then the statement was undone for certain. */
export function isAnswered(error: unknown): boolean {
  return !(error instanceof ProviderError) || (!error.retryable && sqlStateOf(error) !== null);
}

/** Whether other transactions were in the way, and this one was undone: it may go well the next time. */
export function isConflict(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state === "40001" || state === "40P01";
}

/** Whether somebody else had something locked for longer than the statement was to wait. It is undone. */
export function isLockTimeout(error: unknown): boolean {
  return sqlStateOf(error) === "55P03";
}

/**
 * Whether the connection ended, and the statement certainly has no effect: it was not sent, or the server's answer to it
 * was to end the connection. (Not so when the server crashes, 57P02: it says so whatever it has just committed.)
 */
export function isCertainlyUndone(error: unknown): boolean {
  const state = sqlStateOf(error);
  if (state !== null) return state === "57P01" || state === "57P05";
  return NOT_SENT.includes(messageOf(rawOf(error)));
}

/** Whether this server encrypts nothing. */
export function isTlsRefused(error: unknown): boolean {
  return messageOf(rawOf(error)) === NO_TLS;
}

/** What the driver has thrown, as an error of ours; an error of ours as it is. */
export function toProviderError(operation: string, error: unknown, context: ErrorContext): ProviderError {
  if (error instanceof ProviderError) return error;
  const state = sqlStateOf(error);
  const described = state === null ? describeFailure(error, context) : describeState(state, error, context);
  const { kind, message } = described;
  return new ProviderError(kind, operation, `${message} (${sayingOf(error)})`, { cause: error });
}

interface Described {
  readonly kind: ProviderErrorKind;
  readonly message: string;
}

const invalid = (message: string): Described => ({ kind: "invalid", message });
const transient = (message: string): Described => ({ kind: "transient", message });

// The server's answers: https://www.postgresql.org/docs/current/errcodes-appendix.html

function describeState(state: string, error: unknown, context: ErrorContext): Described {
  return describeKnownState(state, error, context) ?? describeClass(state.slice(0, 2), state, context);
}

function describeKnownState(state: string, error: unknown, context: ErrorContext): Described | null {
  const { label, database, user, schema, quotedSchema } = context;
  switch (state) {
    case "08P01":
      return refusedByPooler(error, context);
    case "0A000":
      return messageOf(error).includes("cached plan")
        ? transient(`the tables in schema '${schema}' at ${label} have just been changed; try again`)
        : null;
    case "25006":
      return transient(`${label} is read-only, as a replica is, or a server that fails over; try again later`);
    case "28000":
    case "28P01":
      return loginRefused(error, context);
    case "3D000":
      return databaseMissing(context);
    case "3F000":
    case "42P01":
    case "42883":
    case "42703":
      return invalid(
        `schema '${schema}' at ${label} is not as this version made it. It was dropped, or never migrated: open a provider with migrate: true`,
      );
    case "42501":
      return invalid(
        `user '${user}' may not do this at ${label}. Whoever migrates needs: GRANT CREATE ON DATABASE ${quoteIdentifier(database)} TO ${quoteIdentifier(user)}, or to own schema ${quotedSchema}. Whoever only works needs: GRANT USAGE ON SCHEMA ${quotedSchema}, and rights on what is in it`,
      );
    case "53100":
      return transient(`the disk of ${label} is full. Free space`);
    case "53300":
      return transient(`${label} has too many connections. Lower maxConnections, or raise the server's limit`);
    case "54000":
      return invalid(`a value is too long for an index at ${label}. Ids and names may have at most about 2,600 bytes`);
    case "55P03":
      return transient(`a lock at ${label} was not free in time; try again`);
    case "57014":
      return transient(stoppedStatement(error, context));
    case "57P01":
    case "57P02":
    case "57P04":
    case "57P05":
    case "25P03":
    case "25P04":
      return transient(`the connection to ${label} was ended by the server; try again`);
    case "57P03":
      return transient(`${label} takes no connections now: it is starting up, shutting down or recovering`);
    case "55006":
      return transient(`something at ${label} is in use by others; try again`);
    default:
      return null;
  }
}

function describeClass(group: string, state: string, { label, schema }: ErrorContext): Described {
  switch (group) {
    case "08":
      return transient(`the connection to ${label} failed; try again`);
    case "22":
      return invalid(`the data cannot be stored in schema '${schema}' at ${label}`);
    case "23":
      return invalid(`the data contradicts what is stored in schema '${schema}' at ${label}`);
    case "40":
      return transient(`other transactions at ${label} were in the way, and this one was undone; try again`);
    case "53":
      return transient(`${label} has run out of memory, disk or another resource`);
    case "57":
    case "58":
      return transient(`${label} is in trouble; try again later`);
    case "XX":
      // XX001 and XX002: pages or indexes are damaged.
      return state === "XX000"
        ? transient(`${label}, or a pooler before it, is in trouble; try again later`)
        : { kind: "corrupt", message: `the files of ${label} are damaged. Restore them from a backup` };
    default:
      return invalid(`${label} refused the call on schema '${schema}'`); // E2
  }
}

function loginRefused(error: unknown, { label, user, isPasswordAsked }: ErrorContext): Described {
  if (messageOf(error).includes("no encryption")) {
    const advice = "Add sslmode=require to the URL, or ssl: true to the connection";
    return invalid(`${label} takes no unencrypted connections of user '${user}'. ${advice}`);
  }
  if (isPasswordAsked) {
    // A token may have expired, or been revoked, just now: the next connection asks for another one.
    return transient(`${label} refused user '${user}' with what the password function answered`);
  }
  return invalid(`${label} refused user '${user}'. Check the name, the password, and the server's pg_hba.conf`);
}

function databaseMissing({ label, database }: ErrorContext): Described {
  return invalid(`there is no database '${database}' at ${label}. Create it, or name another one`);
}

/** PgBouncer has one code for most of what it says, and says it in words of its own or of the server. */
function refusedByPooler(error: unknown, context: ErrorContext): Described | null {
  const said = messageOf(error);
  if (said.includes("unsupported startup parameter")) return parameterRefused(said, context);
  if (/authentication failed|no such user/.test(said)) return loginRefused(error, context);
  if (/^no such database|^database ".*" does not exist/.test(said)) return databaseMissing(context);
  return null;
}

function parameterRefused(said: string, { label }: ErrorContext): Described {
  const parameter = said.split(": ")[1] ?? "the parameter";
  const way = parameter === "statement_timeout" ? "Pass statementTimeoutMs: 0" : "Leave it out of the connection";
  return invalid(
    `${label} is a pooler that refuses ${parameter}. ${way}, or have the pooler ignore it (ignore_startup_parameters)`,
  );
}

function stoppedStatement(error: unknown, { label, statementTimeoutMs }: ErrorContext): string {
  return messageOf(error).includes("statement timeout")
    ? `a statement took longer than statementTimeoutMs (${statementTimeoutMs} ms) at ${label} and was undone; try again, or raise it`
    : `a statement was cancelled at ${label} and undone; try again`;
}

// What happens on the way.

function describeFailure(error: unknown, context: ErrorContext): Described {
  const { label, maxConnections, connectTimeoutMs } = context;
  if (error instanceof PasswordFunctionError) return passwordFailed(error, context);
  if (error instanceof PasswordMissingError) return invalid(`${label} asks for a password. Give one`);
  if (error instanceof NoAnswerError) {
    return transient(`${label} no longer answers. Whether the statement took effect is not known; try again`);
  }
  if (isTlsRefused(error)) {
    return invalid(`${label} cannot encrypt. Turn TLS on in the server, or leave it out of the connection`);
  }
  if (CONNECT_TIMEOUTS.includes(messageOf(error))) {
    return transient(
      `no connection to ${label} came about within ${connectTimeoutMs} ms. Check host, port and network`,
    );
  }
  if (messageOf(error) === POOL_IS_BUSY) {
    return transient(
      `no connection to ${label} was free within ${connectTimeoutMs} ms: all ${maxConnections} are busy. Raise maxConnections`,
    );
  }
  if (error instanceof TypeError && fieldsOf(error).code === undefined) {
    return invalid(`the call to ${label} could not be sent`);
  }
  return describeSystemError(error, context);
}

function passwordFailed(error: PasswordFunctionError, { label }: ErrorContext): Described {
  const kind = error.cause instanceof ProviderError ? error.cause.kind : "transient";
  return { kind, message: `password function failed, so there is no connection to ${label}` };
}

function describeSystemError(error: unknown, { label }: ErrorContext): Described {
  const { code } = fieldsOf(error);
  switch (code) {
    case "ECONNREFUSED":
    case "ENOENT":
      return transient(`nobody listens at ${label}. Is the server running, and are host and port right?`);
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return transient(`the host of ${label} cannot be found. Check its name`);
    case "EHOSTUNREACH":
    case "ENETUNREACH":
    case "ETIMEDOUT":
      return transient(`${label} cannot be reached. Check the network and its firewalls`);
    case "EACCES":
    case "EPERM":
      return invalid(`this process may not connect to ${label}`);
    default:
      return (
        describeTlsError(String(code), label) ?? transient(`the connection to ${label} failed or was lost; try again`)
      ); // E2
  }
}

function describeTlsError(code: string, label: string): Described | null {
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    return invalid(`the certificate of ${label} is another host's. Name the host as it does, or pass ssl.servername`);
  }
  if (isAboutCertificates(code)) {
    return invalid(`the certificate of ${label} is not trusted. Pass its authority (sslrootcert, or ssl.ca)`);
  }
  if (/^ERR_OSSL_|^ERR_TLS_|^ERR_SSL_.*ALERT/.test(code)) {
    return invalid(`${label} and this process do not agree on TLS. Check certificates and keys`);
  }
  return null;
}

/** Node has these from OpenSSL: https://nodejs.org/api/tls.html#x509-certificate-error-codes. */
function isAboutCertificates(code: string): boolean {
  return /CERT|^UNABLE_TO_|^HOSTNAME_MISMATCH$|^INVALID_(CA|PURPOSE)$|^PATH_LENGTH_EXCEEDED$/.test(code);
}

/** What the driver said. Node's failure to connect to each of several addresses has no text of its own. */
function sayingOf(error: unknown): string {
  const { errors } = fieldsOf(error);
  if (Array.isArray(errors) && errors.length > 0) return errors.map(messageOf).join("; ");
  const state = sqlStateOf(error);
  return state === null ? messageOf(error) : `${messageOf(error)}; SQLSTATE ${state}`;
}

/** What the driver has thrown, of an error of ours. */
function rawOf(error: unknown): unknown {
  return error instanceof ProviderError ? error.cause : error;
}

interface Fields {
  readonly code?: unknown;
  readonly severity?: unknown;
  readonly errors?: unknown;
}

function fieldsOf(error: unknown): Fields {
  return (typeof error === "object" && error !== null ? error : {}) as Fields;
}
