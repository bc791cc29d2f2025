import { open, readFile, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { CodecError, ProviderError } from "duroxide-ts/provider";

/**
 * One JSON document in memory, whose committed state is always the one on disk.
 *
 * A change works on a draft, synchronously, and becomes visible only when its file is written. So whatever a change
 * throws, or whatever the disk does, leaves everything as it was: that is all there is to atomicity here.
 */
export class JsonDocument<T extends { readonly format: number }> {
  readonly #file: string;
  #text: string;
  #content: T;
  #lastChange: Promise<unknown> = Promise.resolve();
  #closed = false;

  private constructor(file: string, text: string, content: T) {
    this.#file = file;
    this.#text = text;
    this.#content = content;
  }

  /** Reads the document; where there is no file, begins one with `empty`. The format must be that of `empty`. */
  static async open<T extends { readonly format: number }>(file: string, empty: T): Promise<JsonDocument<T>> {
    const text = await readIfThere(file);
    if (text !== null) return new JsonDocument(file, text, parse(file, text, empty));
    // Written at once, so that a directory that does not exist is found out here and not by the first caller.
    const emptyText = JSON.stringify(empty);
    await write("open", file, emptyText);
    return new JsonDocument(file, emptyText, empty);
  }

  /** The committed state. Not to be written to. */
  get content(): T {
    return this.#content;
  }

  /** Runs `edit` on a draft and resolves with its answer when the draft is on disk. One change at a time. */
  change<R>(operation: string, edit: (draft: T) => R): Promise<R> {
    if (this.#closed) return Promise.reject(new ProviderError("invalid", operation, "the provider is closed"));
    const result = this.#lastChange.then(() => this.#commit(operation, edit));
    this.#lastChange = result.catch(() => undefined);
    return result;
  }

  /** Changes that were asked for before are finished first. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#lastChange;
  }

  async #commit<R>(operation: string, edit: (draft: T) => R): Promise<R> {
    const draft: T = JSON.parse(this.#text);
    const answer = refusingWhatHasNoText(operation, () => edit(draft));
    const text = JSON.stringify(draft);
    // A fetch that finds nothing is the most frequent call of all, and must not cost a write.
    if (text !== this.#text) {
      await write(operation, this.#file, text);
      this.#text = text;
      this.#content = draft;
    }
    return answer;
  }
}

async function readIfThere(file: string): Promise<string | null> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw new ProviderError("invalid", "open", `cannot read ${file}`, { cause: error });
  }
}

function parse<T extends { readonly format: number }>(file: string, text: string, empty: T): T {
  try {
    const content: T = JSON.parse(text);
    if (content.format === empty.format) return content;
  } catch (error) {
    throw new ProviderError("invalid", "open", `${file} is not JSON`, { cause: error });
  }
  throw new ProviderError("invalid", "open", `${file} is no store that this version understands`);
}

/** The codec refuses numbers that its text cannot carry. Such a call is wrong, and stays wrong. */
function refusingWhatHasNoText<R>(operation: string, edit: () => R): R {
  try {
    return edit();
  } catch (error) {
    if (error instanceof CodecError) throw new ProviderError("invalid", operation, error.message, { cause: error });
    throw error;
  }
}

/**
 * A reader of the file sees the old text or the new one, also after a power cut: the text is on disk before it gets its
 * name, and the name is on disk before anybody is told.
 *
 * Where only the last step fails, the file is new and we say that it is not. The next change then writes over it; a
 * crash before that looks like a reply that was lost, which callers must live with anyway.
 */
async function write(operation: string, file: string, text: string): Promise<void> {
  const draft = `${file}.draft`;
  try {
    await withHandle(draft, "w", async (handle) => {
      await handle.writeFile(text);
      await handle.sync();
    });
    await rename(draft, file);
    await withHandle(dirname(file), "r", (handle) => handle.sync());
  } catch (error) {
    throw new ProviderError("transient", operation, `cannot write ${file}`, { cause: error });
  }
}

type Handle = Awaited<ReturnType<typeof open>>;

async function withHandle(path: string, flags: string, use: (handle: Handle) => Promise<void>): Promise<void> {
  const handle = await open(path, flags);
  try {
    await use(handle);
  } finally {
    await handle.close();
  }
}
