// duroxide-ts/postgres — a store in PostgreSQL.

export type { StartsGoAhead } from "../../provider/kit/proven-starts.js";
export { type EntraCredential, type EntraPasswordOptions, type EntraToken, entraPassword } from "./entra-password.js";
export { migrations, type PostgresMigration } from "./migrate.js";
export type {
  PostgresConnection,
  PostgresOptions,
  PostgresPassword,
  PostgresTls,
  PostgresWakeUps,
} from "./options.js";
export { PostgresProvider } from "./postgres-provider.js";
