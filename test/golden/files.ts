// test/golden/files.ts — where golden histories are kept: a folder for each program, a file for each execution.

import { readdirSync, readFileSync } from "node:fs";

const HISTORIES = new URL("./histories/", import.meta.url);

export function folderOf(name: string): URL {
  return new URL(`${name}/`, HISTORIES);
}

export interface GoldenFile {
  /** Of the program that wrote it. */
  readonly golden: string;
  readonly file: string;
  readonly text: string;
}

/** All that was ever recorded. */
export function goldenFiles(): readonly GoldenFile[] {
  return readdirSync(HISTORIES).flatMap((golden) =>
    readdirSync(folderOf(golden)).map((file) => {
      return { golden, file: `${golden}/${file}`, text: readFileSync(new URL(file, folderOf(golden)), "utf8") };
    }),
  );
}
