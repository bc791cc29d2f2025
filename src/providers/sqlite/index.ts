export type { StartsGoAhead } from "../../provider/kit/proven-starts.js";
export type { SqliteDurability, SqliteOptions, WriterChoice } from "./options.js";
export { SqliteProvider } from "./sqlite-provider.js";
