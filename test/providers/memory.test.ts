import { MemoryProvider } from "../../src/providers/memory/index.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { describeProviderContract } from "./contract/index.js";

describeProviderContract("MemoryProvider", async () => {
  const clock = new VirtualClock();
  return { clock, provider: new MemoryProvider({ clock }) };
});
