export type { StartsGoAhead } from "../../provider/kit/proven-starts.js";
export type { SqliteDurability, SqliteOptions } from "./options.js";
export { SqliteProvider } from "./sqlite-provider.js";
export type { WriterChoice } from "./writer.js";
