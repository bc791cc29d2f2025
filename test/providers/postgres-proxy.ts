// A network between a client and a PostgreSQL server that a test can break.

import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { onTestFinished } from "vitest";

export class ServerProxy {
  /** How many connections were made. */
  connections = 0;
  /** Calls the processes of the server by other numbers, as poolers do. */
  renamesProcesses = false;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #url = "";
  #open = 0;
  #onClose: () => void = () => {};
  /** Told each time the client has sent something. */
  #onSent: ((bytes: Buffer) => void) | null = null;

  private constructor(target: URL) {
    this.#server = createServer((client) => {
      this.connections += 1;
      this.#join(client, connect(Number(target.port), target.hostname));
    });
  }

  /** Ends with the test. */
  static async to(url: string): Promise<ServerProxy> {
    const proxy = new ServerProxy(new URL(url));
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    const { port } = proxy.#server.address() as AddressInfo;
    proxy.#url = Object.assign(new URL(url), { hostname: "127.0.0.1", port: String(port) }).href;
    onTestFinished(() => {
      proxy.cut();
      proxy.#server.close();
    });
    return proxy;
  }

  /** The server's, through this proxy. */
  get url(): string {
    return this.#url;
  }

  /** From now on nothing gets through on the connections there are, and nobody is told. Later ones work. */
  swallow(): void {
    for (const socket of this.#sockets) {
      socket.removeAllListeners("data");
      socket.resume();
    }
  }

  /** Ends all connections, without a word. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Resolves when the client has sent what contains the text; it has been passed on by then. */
  sent(text: string): Promise<void> {
    return new Promise((resolve) => {
      this.#onSent = (bytes) => {
        if (bytes.includes(text)) resolve();
      };
    });
  }

  /** Resolves when no more than so many connections are open. */
  async untilOpen(most: number): Promise<void> {
    while (this.#open > most) {
      await new Promise<void>((resolve) => {
        this.#onClose = resolve;
      });
    }
  }

  #join(client: Socket, server: Socket): void {
    this.#open += 1;
    client.on("close", () => {
      this.#open -= 1;
      this.#onClose();
    });
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(from);
      from.on("data", (bytes) => {
        if (from === server && this.renamesProcesses) renameProcess(bytes);
        to.write(bytes);
        if (from === client) this.#onSent?.(bytes);
      });
      from.on("error", () => {});
      from.on("close", () => {
        this.#sockets.delete(from);
        to.destroy();
      });
    }
  }
}

/** What a message with the number of a process begins with, and its length. */
const KEY_DATA = Buffer.from([0x4b, 0, 0, 0, 12]);

function renameProcess(bytes: Buffer): void {
  const at = bytes.indexOf(KEY_DATA);
  if (at >= 0) bytes.writeInt32BE(bytes.readInt32BE(at + KEY_DATA.length) + 1, at + KEY_DATA.length);
}
