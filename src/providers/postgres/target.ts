// providers/postgres/target.ts — which database is meant: from a URL or an object to everything a connection needs.
//
//   T1. No message shows a password, nor any piece of a URL that could be a piece of one.
//   T2. A URL means what it means to PostgreSQL's own programs: `sslmode=require` encrypts and trusts any certificate,
//       `verify-full` trusts none but the host's. What we do not know is refused: a misspelled `sslmode` would connect
//       without TLS.
//   T3. The environment (PGHOST, PGPASSWORD, …) chooses neither whom we talk to nor as whom.

import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { type ConnectionOptions, checkServerIdentity } from "node:tls";
import { InvalidOptionsError, messageOf } from "../../errors.js";
import { checkOptions, integerBetween, isBoolean, isObject, isString, type OptionCheck, shown } from "../../options.js";

/**
 * A password, or what is asked for one whenever a connection is made: tokens that expire, secrets that rotate.
 *
 * @example
 * import { readFile } from "node:fs/promises";
 *
 * const password: PostgresPassword = async () => (await readFile("/run/secrets/database", "utf8")).trim();
 */
export type PostgresPassword = string | (() => string | Promise<string>);

/**
 * How the server proves who it is, and how we do. As the options of `node:tls`.
 *
 * @example
 * import { readFileSync } from "node:fs";
 *
 * const ssl: PostgresTls = { ca: readFileSync("/etc/ssl/database-ca.pem") };
 */
export interface PostgresTls {
  /** Who may have signed the server's certificate. @default the authorities that Node trusts */
  readonly ca?: string | Uint8Array | readonly (string | Uint8Array)[];
  /** Our own certificate, where the server asks for one. */
  readonly cert?: string | Uint8Array;
  /** The private key of `cert`. */
  readonly key?: string | Uint8Array;
  /** Whether the server's certificate must be good. @default true */
  readonly rejectUnauthorized?: boolean;
  /** Whose certificate it must be, where that is not the host's: through a tunnel, or by an address. @default host */
  readonly servername?: string;
}

/**
 * Where a database is, in parts.
 *
 * @example
 * const connection: PostgresConnection = { host: "db.internal", database: "orders", user: "orders_app", ssl: true };
 */
export interface PostgresConnection {
  /** A name, an address, or the directory of a Unix socket. */
  readonly host: string;
  /** @default 5432 */
  readonly port?: number;
  /** @default the user's name, as PostgreSQL has it */
  readonly database?: string;
  readonly user: string;
  /** Asked for whenever a connection is made, if it is a function. @default none */
  readonly password?: PostgresPassword;
  /**
   * `true`: encrypted, and the server's certificate must be good. `"require"`: encrypted, whatever the certificate.
   * @default false
   */
  readonly ssl?: boolean | "require" | PostgresTls;
}

/** How a connection is protected. `prefer`: encrypted if the server can. */
export type TlsMode = "disable" | "prefer" | "require";

export interface PostgresTarget {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  /** Null: none was given. A function even where it is constant, so that nothing that is printed shows it. */
  readonly password: (() => string | Promise<string>) | null;
  /** Whether it may be another one the next time. */
  readonly isPasswordAsked: boolean;
  readonly tlsMode: TlsMode;
  /** As `node:tls` takes it. Its type stays inside: users compile without the types of Node. */
  readonly tls: object;
  readonly channelBinding: boolean;
  /** Options for the server, as `-c name=value`. */
  readonly startupOptions: string | null;
  /** What a URL says about connections; options say it louder. */
  readonly defaults: { readonly applicationName?: string; readonly connectTimeoutMs?: number };
  /** What messages call it: `db.example.com:5432/app`. */
  readonly label: string;
}

/** @throws InvalidOptionsError */
export function resolveTarget(what: string, connection: unknown): PostgresTarget {
  if (typeof connection === "string") return targetOf(what, "the connection string", partsOfUrl(what, connection));
  if (connection instanceof URL) return targetOf(what, "the URL", partsOfUrl(what, connection.href));
  return targetOf(what, "the connection", partsOfObject(what, connection));
}

/** What `text` leaves out is as in `main`. @throws InvalidOptionsError */
export function resolveListenTarget(what: string, text: string, main: PostgresTarget): PostgresTarget {
  const subject = "option 'listenConnectionString'";
  const parts = partsOfUrl(what, text, subject);
  const inherited: Parts = {
    ...parts,
    user: parts.user ?? main.user,
    database: parts.database ?? main.database,
    password: parts.password ?? main.password,
    tlsMode: parts.tlsMode ?? main.tlsMode,
    tls: parts.tlsMode === undefined ? main.tls : parts.tls,
  };
  const target = targetOf(what, subject, inherited);
  return parts.password === null ? { ...target, isPasswordAsked: main.isPasswordAsked } : target;
}

/** What was said, before it is known whether it is enough. */
interface Parts {
  readonly host: string | null;
  readonly port: number | null;
  readonly database: string | null;
  readonly user: string | null;
  readonly password: PostgresPassword | null;
  readonly tlsMode?: TlsMode;
  readonly tls: object;
  readonly channelBinding: boolean;
  readonly startupOptions: string | null;
  readonly defaults: PostgresTarget["defaults"];
}

const DEFAULT_PORT = 5432;

function targetOf(what: string, subject: string, parts: Parts): PostgresTarget {
  const { host, user, password } = parts;
  if (host === null) throw new InvalidOptionsError(`${what}: ${subject} names no host. Such as ${EXAMPLE}.`);
  if (host.includes(",")) {
    throw new InvalidOptionsError(`${what}: ${subject} names several hosts. Name one, such as that of a proxy.`);
  }
  if (user === null) throw new InvalidOptionsError(`${what}: ${subject} names no user. Such as ${EXAMPLE}.`);
  const port = parts.port ?? DEFAULT_PORT;
  const database = parts.database ?? user;
  const address = isIP(host) === 6 ? `[${host}]` : host;
  return {
    host,
    port,
    database,
    user,
    password: typeof password === "string" ? () => password : password,
    isPasswordAsked: typeof password === "function",
    tlsMode: parts.tlsMode ?? "disable",
    tls: parts.tls,
    channelBinding: parts.channelBinding,
    startupOptions: parts.startupOptions,
    defaults: parts.defaults,
    label: `${address}:${port}/${database}`,
  };
}

const EXAMPLE = '"postgres://user:password@localhost:5432/database"';

// An object.

function partsOfObject(what: string, connection: unknown): Parts {
  if (isObject(connection) !== null) {
    const found = connection === null ? "null" : Array.isArray(connection) ? "an array" : typeof connection;
    throw new InvalidOptionsError(
      `${what}: the connection must be a URL, such as ${EXAMPLE}, or an object with host and user, not ${found}.`,
    );
  }
  checkOptions(what, connection, {
    host: isFilledString,
    port: integerBetween(1, 65_535),
    database: isFilledString,
    user: isFilledString,
    password: isPassword,
    ssl: isSsl,
  });
  const { host, port, database, user, password, ssl } = connection as Partial<PostgresConnection>;
  return {
    host: host ?? null,
    port: port ?? null,
    database: database ?? null,
    user: user ?? null,
    password: password === "" ? null : (password ?? null),
    ...tlsOfObject(what, ssl ?? false),
    channelBinding: false,
    startupOptions: null,
    defaults: {},
  };
}

const isFilledString: OptionCheck = (value) => {
  if (typeof value !== "string") return isString(value);
  if (value.includes("\0")) return "must not contain a NUL character";
  return value === "" ? "must not be empty" : null;
};

/** T1 */
const isPassword: OptionCheck = (value) => {
  if (typeof value === "string" || typeof value === "function") return null;
  return `must be a string or a function that answers with one, not ${value === null ? "null" : typeof value}`;
};

const isSsl: OptionCheck = (value) => {
  if (typeof value === "boolean" || value === "require" || isObject(value) === null) return null;
  return `must be true, false, "require" or an object, not ${shown(value)}`;
};

function tlsOfObject(what: string, ssl: boolean | "require" | PostgresTls): Pick<Parts, "tlsMode" | "tls"> {
  if (ssl === false) return { tlsMode: "disable", tls: {} };
  if (ssl === true) return { tlsMode: "require", tls: {} };
  if (ssl === "require") return { tlsMode: "require", tls: UNVERIFIED };
  checkOptions(`${what}: ssl`, ssl, {
    ca: isPem,
    cert: isPem,
    key: isPem,
    rejectUnauthorized: isBoolean,
    servername: isFilledString,
  });
  const { servername, ...given } = ssl;
  // The driver asks for the host's name whatever we say: whose certificate it has to be is checked by us.
  const identity: ConnectionOptions =
    servername === undefined
      ? {}
      : { servername, checkServerIdentity: (_host, certificate) => checkServerIdentity(servername, certificate) };
  return { tlsMode: "require", tls: { ...given, ...identity } as ConnectionOptions };
}

/** T1: a key is not shown either. */
const isPem: OptionCheck = (value) => {
  const all = Array.isArray(value) ? value : [value];
  const isGood = all.every((item) => (typeof item === "string" && item !== "") || item instanceof Uint8Array);
  return isGood ? null : "must be the text of a PEM file, or its bytes";
};

const UNVERIFIED: ConnectionOptions = Object.freeze({ rejectUnauthorized: false });

// A URL.

/** What may stand after the `?`. PostgreSQL's own names, and those of the driver that have found their way into URLs. */
const PARAMETERS = [
  "host",
  "port",
  "user",
  "password",
  "dbname",
  "sslmode",
  "ssl",
  "sslrootcert",
  "sslcert",
  "sslkey",
  "application_name",
  "connect_timeout",
  "options",
  "channel_binding",
  "uselibpqcompat",
] as const;

type Parameter = (typeof PARAMETERS)[number];
type Parameters = Partial<Record<Parameter, string>>;

function partsOfUrl(what: string, text: string, subject = "the connection string"): Parts {
  const refuse = (problem: string): never => {
    throw new InvalidOptionsError(`${what}: ${subject} ${problem}.`);
  };
  const url = parsedUrl(text, refuse);
  const parameters = parametersOf(url, refuse);
  const decoded = (part: string): string | null => {
    try {
      return part === "" ? null : decodeURIComponent(part);
    } catch {
      return refuse(ENCODING);
    }
  };
  const hostname = url.hostname === NO_HOST ? "" : url.hostname.replace(/^\[(.+)\]$/, "$1");
  return {
    host: parameters.host ?? decoded(hostname),
    port: portOf(parameters.port ?? url.port, refuse),
    database: parameters.dbname ?? decoded(url.pathname.slice(1)),
    user: parameters.user ?? decoded(url.username),
    password: parameters.password ?? decoded(url.password),
    ...tlsOfParameters(parameters, refuse),
    channelBinding: channelBindingOf(parameters.channel_binding, refuse),
    startupOptions: parameters.options ?? null,
    defaults: {
      applicationName: parameters.application_name,
      connectTimeoutMs: connectTimeoutOf(parameters.connect_timeout, refuse),
    } as PostgresTarget["defaults"],
  };
}

type Refuse = (problem: string) => never;

/** Stands for the host in `postgres://user@/database?host=/var/run`, which is no URL to Node. */
const NO_HOST = "no-host.invalid";

const ENCODING =
  "is no valid URL. Characters such as @ : / ? # % in a user's name or a password must be encoded: encodeURIComponent(password)";

function parsedUrl(given: string, refuse: Refuse): URL {
  const text = given.trim(); // Variables and files of secrets often end with a newline.
  if (text === "") return refuse(`is empty. Such as ${EXAMPLE}`);
  const [, scheme] = /^([a-z][a-z\d+.-]*):\/\//i.exec(text) ?? [];
  if (scheme === undefined) return refuse(`is no URL. Such as ${EXAMPLE}`); // T1: it may be a password, or hold one.
  if (!/^postgres(ql)?$/i.test(scheme)) return refuse(`begins with '${scheme}://', not with 'postgres://'`);
  let url: URL;
  try {
    url = new URL(text.replace(/^([^/]*\/\/[^/?#]*@)(?=\/|\?|$)/, `$1${NO_HOST}`));
  } catch {
    return refuse(ENCODING); // T1: the error of Node shows the URL.
  }
  // A password such as `12?x` or `12/x` would make a host of the user, and show the rest of the password as a parameter.
  if (url.hash !== "" || `${url.pathname}${url.search}`.includes("@")) return refuse(ENCODING);
  return url;
}

function parametersOf(url: URL, refuse: Refuse): Parameters {
  const found: Parameters = {};
  for (const [name, value] of url.searchParams) {
    if (!(PARAMETERS as readonly string[]).includes(name)) {
      const shownName = /^\w{1,40}$/.test(name) ? ` '${name}'` : "";
      return refuse(`has a parameter${shownName} that is not known. There are: ${PARAMETERS.join(", ")}`);
    }
    if (value !== "") found[name as Parameter] = value;
  }
  return found;
}

function portOf(text: string, refuse: Refuse): number | null {
  if (text === "") return null;
  const port = Number(text);
  return Number.isInteger(port) && port >= 1 && port <= 65_535 ? port : refuse("has a port that is none");
}

function connectTimeoutOf(text: string | undefined, refuse: Refuse): number | undefined {
  const seconds = Number(text ?? 0);
  if (!Number.isInteger(seconds) || seconds < 0 || seconds > 86_400) {
    return refuse("has a 'connect_timeout' that is no number of seconds");
  }
  return seconds === 0 ? undefined : seconds * 1_000;
}

function channelBindingOf(text: string | undefined, refuse: Refuse): boolean {
  if (text === undefined || text === "disable") return false;
  return (
    text === "prefer" || text === "require" || refuse("has a 'channel_binding' other than disable, prefer, require")
  );
}

/** T2 */
function tlsOfParameters(parameters: Parameters, refuse: Refuse): Pick<Parts, "tlsMode" | "tls"> {
  const mode = sslModeOf(parameters, refuse);
  if (mode === undefined || mode === "disable") return { ...(mode && { tlsMode: mode }), tls: {} };
  const ca = fileOf("sslrootcert", parameters, refuse);
  const cert = fileOf("sslcert", parameters, refuse);
  const key = fileOf("sslkey", parameters, refuse);
  const files: ConnectionOptions = { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
  switch (mode) {
    case "prefer":
      return { tlsMode: "prefer", tls: { ...files, ...UNVERIFIED } };
    case "require":
      return { tlsMode: "require", tls: { ...files, ...(ca === undefined ? UNVERIFIED : WHATEVER_NAME) } };
    case "no-verify":
      return { tlsMode: "require", tls: { ...files, ...UNVERIFIED } };
    case "verify-ca":
      return { tlsMode: "require", tls: { ...files, ...WHATEVER_NAME } };
    case "verify-full":
      return { tlsMode: "require", tls: files };
  }
}

/** Signed by whom we trust; for whomever. */
const WHATEVER_NAME: ConnectionOptions = Object.freeze({ checkServerIdentity: () => undefined });

type SslMode = "disable" | "prefer" | "require" | "no-verify" | "verify-ca" | "verify-full";
const SSL_MODES: readonly string[] = ["disable", "prefer", "require", "no-verify", "verify-ca", "verify-full"];

function sslModeOf({ sslmode, ssl, sslrootcert, sslcert, sslkey }: Parameters, refuse: Refuse): SslMode | undefined {
  if (sslmode !== undefined) {
    return SSL_MODES.includes(sslmode)
      ? (sslmode as SslMode)
      : refuse(`has an 'sslmode' that is not known. There are: ${SSL_MODES.join(", ")}`);
  }
  if (ssl === "true" || ssl === "1") return "verify-full";
  if (ssl === "false" || ssl === "0") return "disable";
  if (ssl !== undefined) return refuse("has an 'ssl' other than true or false. Use sslmode");
  return sslrootcert === undefined && sslcert === undefined && sslkey === undefined ? undefined : "verify-full";
}

function fileOf(
  name: "sslrootcert" | "sslcert" | "sslkey",
  parameters: Parameters,
  refuse: Refuse,
): string | undefined {
  const path = parameters[name];
  if (path === undefined || (name === "sslrootcert" && path === "system")) return undefined;
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    return refuse(`has an '${name}' that cannot be read (${messageOf(error)})`);
  }
}
