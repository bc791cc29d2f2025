export { MemoryProvider, type MemoryProviderOptions } from "./memory-provider.js";
