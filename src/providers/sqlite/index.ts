export type { SqliteDurability, SqliteOptions } from "./options.js";
export { SqliteProvider } from "./sqlite-provider.js";
