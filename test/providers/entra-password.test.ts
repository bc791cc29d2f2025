import { describe, expect, test } from "vitest";
import { InvalidOptionsError, ProviderError } from "../../src/errors.js";
import { type EntraCredential, type EntraToken, entraPassword } from "../../src/providers/postgres/entra-password.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/** Answers with token-1, token-2, … that live for an hour; or fails, as long as it is told to. */
class FakeCredential implements EntraCredential {
  readonly scopes: string[] = [];
  failure: Error | null = null;
  lifetimeMs = HOUR_MS;
  readonly #clock: VirtualClock;

  constructor(clock: VirtualClock) {
    this.#clock = clock;
  }

  async getToken(scope: string): Promise<EntraToken> {
    this.scopes.push(scope);
    if (this.failure !== null) throw this.failure;
    return { token: `token-${this.scopes.length}`, expiresOnTimestamp: this.#clock.now() + this.lifetimeMs };
  }
}

function newCredential(): { readonly clock: VirtualClock; readonly credential: FakeCredential } {
  const clock = new VirtualClock();
  return { clock, credential: new FakeCredential(clock) };
}

describe("a token", () => {
  test("is asked for once and used until five minutes before its end", async () => {
    const { clock, credential } = newCredential();
    const password = entraPassword({ credential, clock });

    expect(await password()).toBe("token-1");
    await clock.advance(55 * MINUTE_MS - 1);
    expect(await password()).toBe("token-1");
    await clock.advance(1);
    expect(await password()).toBe("token-2");
    expect(credential.scopes).toHaveLength(2);
  });

  test("is asked for by one, whoever waits for it", async () => {
    const { clock, credential } = newCredential();
    const password = entraPassword({ credential, clock });

    expect(await Promise.all([password(), password(), password()])).toEqual(["token-1", "token-1", "token-1"]);
    expect(credential.scopes).toHaveLength(1);
  });

  test("is for the database service, or for what is said", async () => {
    const { clock, credential } = newCredential();
    await entraPassword({ credential, clock })();
    await entraPassword({ credential, clock, scope: "https://elsewhere/.default" })();
    expect(credential.scopes).toEqual([
      "https://ossrdbms-aad.database.windows.net/.default",
      "https://elsewhere/.default",
    ]);
  });

  test("is replaced as early as is said", async () => {
    const { clock, credential } = newCredential();
    const password = entraPassword({ credential, clock, refreshBeforeMs: 20 * MINUTE_MS });
    await password();
    await clock.advance(40 * MINUTE_MS);
    expect(await password()).toBe("token-2");
  });

  test("that lives too briefly to be kept is asked for each time", async () => {
    const { clock, credential } = newCredential();
    credential.lifetimeMs = MINUTE_MS;
    const password = entraPassword({ credential, clock });
    expect([await password(), await password()]).toEqual(["token-1", "token-2"]);
  });
});

describe("a failure", () => {
  test("is told, and forgotten", async () => {
    const { clock, credential } = newCredential();
    const password = entraPassword({ credential, clock });
    credential.failure = new Error("no identity here");
    await expect(password()).rejects.toThrow("no identity here");
    credential.failure = null;
    expect(await password()).toBe("token-2");
  });

  test("to replace a token that is still good leaves that one in use until its end", async () => {
    const { clock, credential } = newCredential();
    const password = entraPassword({ credential, clock });
    await password();
    credential.failure = new Error("the service is down");

    await clock.advance(56 * MINUTE_MS);
    expect(await password()).toBe("token-1");
    await clock.advance(4 * MINUTE_MS);
    await expect(password()).rejects.toThrow("the service is down");
  });

  test("is what no token counts as", async () => {
    const credential: EntraCredential = { getToken: async () => null };
    await expect(entraPassword({ credential })()).rejects.toThrow("the credential has no token for 'https://ossrdbms");
  });

  test("is a missing package, and the message names it", async () => {
    const failure = await entraPassword()().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ProviderError);
    expect(failure).toMatchObject({ kind: "invalid" });
    expect((failure as Error).message).toContain("npm install @azure/identity");
  });
});

test("options that make no sense are refused at once", () => {
  expect(() => entraPassword({ credential: {} as EntraCredential })).toThrow(InvalidOptionsError);
  expect(() => entraPassword({ refreshBeforeMs: -1 })).toThrow("option 'refreshBeforeMs'");
  expect(() => entraPassword({ scop: "x" } as object)).toThrow("Did you mean 'scope'?");
});
