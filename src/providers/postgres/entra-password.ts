// providers/postgres/entra-password.ts — tokens of Microsoft Entra ID as passwords, for Azure Database for PostgreSQL.
//
//   P1. One request at a time, whoever asks; a failed one is forgotten, and the next to ask tries again.
//   P2. A token is replaced some minutes before it expires. Where that fails, it is used until then.

import { type Clock, systemClock } from "../../clock.js";
import { messageOf, ProviderError } from "../../errors.js";
import { checkOptions, hasMethods, integerBetween, isClock, isString, type OptionCheck, shown } from "../../options.js";

/**
 * A token, and until when it is good.
 *
 * @example
 * const token: EntraToken = { token: "eyJ0…", expiresOnTimestamp: Date.now() + 3_600_000 };
 */
export interface EntraToken {
  readonly token: string;
  /** Milliseconds since the epoch. */
  readonly expiresOnTimestamp: number;
}

/**
 * What gives tokens: any credential of `@azure/identity`, or something of yours.
 *
 * @example
 * const credential: EntraCredential = {
 *   getToken: async (scope) => ({ token: `a token for ${scope}`, expiresOnTimestamp: Date.now() + 3_600_000 }),
 * };
 */
export interface EntraCredential {
  getToken(scope: string): Promise<EntraToken | null>;
}

/**
 * How tokens are had.
 *
 * @example
 * const options: EntraPasswordOptions = { refreshBeforeMs: 600_000 };
 */
export interface EntraPasswordOptions {
  /** What they are for. Sovereign clouds have their own. @default "https://ossrdbms-aad.database.windows.net/.default" */
  readonly scope?: string;
  /** Who asks for them. @default a DefaultAzureCredential of @azure/identity, which must be installed */
  readonly credential?: EntraCredential;
  /** How long before its end a token is replaced. @default 300000 */
  readonly refreshBeforeMs?: number;
  /** @default the system's clock */
  readonly clock?: Clock;
}

const DEFAULT_SCOPE = "https://ossrdbms-aad.database.windows.net/.default";
/** Longer than clocks differ and logins take. */
const DEFAULT_REFRESH_BEFORE_MS = 300_000;
const LONGEST_REFRESH_MS = 3_600_000;

/**
 * A password function that answers with tokens of Microsoft Entra ID: no secret is kept, and connections made hours later
 * log in with a fresh token.
 *
 * @throws DUROXIDE_INVALID_OPTIONS for an option that is unknown or out of range
 * @example
 * const connection: PostgresConnection = {
 *   host: "orders.postgres.database.azure.com",
 *   user: "orders-app",
 *   database: "orders",
 *   password: entraPassword(),
 *   ssl: true,
 * };
 */
export function entraPassword(options?: EntraPasswordOptions): () => Promise<string> {
  checkOptions("entraPassword", options, {
    scope: isString,
    credential: isCredential,
    refreshBeforeMs: integerBetween(0, LONGEST_REFRESH_MS),
    clock: isClock,
  });
  const source = new TokenSource({
    scope: options?.scope ?? DEFAULT_SCOPE,
    credential: options?.credential ?? null,
    refreshBeforeMs: options?.refreshBeforeMs ?? DEFAULT_REFRESH_BEFORE_MS,
    clock: options?.clock ?? systemClock,
  });
  return () => source.token();
}

const isCredential: OptionCheck = (value) =>
  hasMethods(value, "getToken") ? null : `must be a credential with getToken(), not ${shown(value)}`;

interface TokenSettings {
  readonly scope: string;
  readonly credential: EntraCredential | null;
  readonly refreshBeforeMs: number;
  readonly clock: Clock;
}

class TokenSource {
  readonly #settings: TokenSettings;
  #credential: EntraCredential | null;
  #known: EntraToken | null = null;
  #asked: Promise<EntraToken> | null = null;

  constructor(settings: TokenSettings) {
    this.#settings = settings;
    this.#credential = settings.credential;
  }

  async token(): Promise<string> {
    const { refreshBeforeMs } = this.#settings;
    if (this.#known !== null && this.#isGoodFor(refreshBeforeMs, this.#known)) return this.#known.token;
    this.#asked ??= this.#ask().finally(() => {
      this.#asked = null; // P1
    });
    try {
      this.#known = await this.#asked;
      return this.#known.token;
    } catch (error) {
      if (this.#known !== null && this.#isGoodFor(0, this.#known)) return this.#known.token; // P2
      throw error;
    }
  }

  #isGoodFor(durationMs: number, { expiresOnTimestamp }: EntraToken): boolean {
    return this.#settings.clock.now() + durationMs < expiresOnTimestamp;
  }

  async #ask(): Promise<EntraToken> {
    this.#credential ??= await defaultCredential();
    const answer = await this.#credential.getToken(this.#settings.scope);
    if (answer !== null && typeof answer.token === "string" && answer.token !== "") return answer;
    throw new Error(`the credential has no token for '${this.#settings.scope}'`);
  }
}

interface IdentityModule {
  readonly DefaultAzureCredential: new () => EntraCredential;
}

/** Named by a variable, as most who compile or bundle this have no such package. */
const IDENTITY_PACKAGE: string = "@azure/identity";

async function defaultCredential(): Promise<EntraCredential> {
  let identity: IdentityModule;
  try {
    identity = (await import(IDENTITY_PACKAGE)) as IdentityModule;
  } catch (error) {
    const message = `'${IDENTITY_PACKAGE}' could not be loaded (${messageOf(error)})`;
    const remedy = `Run: npm install ${IDENTITY_PACKAGE}; or pass a credential`;
    throw new ProviderError("invalid", "entraPassword", `${message}. ${remedy}`, { cause: error });
  }
  return new identity.DefaultAzureCredential();
}
