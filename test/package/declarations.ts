// Reads declaration files with the compiler's own eyes. TypeScript calls this interface of its unstable; the lock file pins it.

import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { type Node, type SourceFile, SyntaxKind } from "typescript/unstable/ast";
import { API, type Project, type Symbol as Sym, SymbolFlags } from "typescript/unstable/sync";
import { ROOT } from "./packing.js";

/** One name that an entry point exports. */
export interface Exported {
  readonly name: string;
  /** Where it is declared. */
  readonly file: string;
  readonly isFunctionOrClass: boolean;
  /** What its TSDoc comment says, tags apart. Empty: there is none. */
  readonly documentation: string;
  readonly hasExample: boolean;
}

/** The declaration files that some entry points reach, and what they declare. */
export class Declarations {
  readonly #api = new API({ cwd: ROOT });
  readonly #project: Project;
  readonly #root: string;

  /** `root` is where our own files lie: what is declared outside it is not ours. `folder` takes a project file. */
  constructor(root: string, entryFiles: readonly string[], folder: string) {
    this.#root = root;
    const project = join(folder, "tsconfig.json");
    const typeRoots = [join(ROOT, "node_modules/@types")];
    const compilerOptions = {
      target: "es2022",
      module: "nodenext",
      strict: true,
      noEmit: true,
      types: ["node"],
      typeRoots,
    };
    mkdirSync(dirname(project), { recursive: true });
    writeFileSync(project, JSON.stringify({ compilerOptions, files: entryFiles }));
    this.#project = this.#api.updateSnapshot({ openProjects: [project] }).getProject(project)!;
  }

  /** Our own files, whichever entry point reaches them. */
  files(): readonly SourceFile[] {
    const { program } = this.#project;
    const ours = program.getSourceFileNames().filter((file) => file.startsWith(this.#root));
    return ours.map((file) => program.getSourceFile(file)!);
  }

  /** Everything that an entry point exports, by name. */
  exportsOf(entryFile: string): readonly Exported[] {
    const { checker, program } = this.#project;
    const module = checker.getSymbolAtLocation(program.getSourceFile(entryFile)!)!;
    return checker.getExportsOfModule(module).map((symbol) => {
      const target = symbol.flags & SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
      return {
        name: symbol.name,
        file: relative(this.#root, fileOf(target)),
        isFunctionOrClass: (target.flags & (SymbolFlags.Function | SymbolFlags.Class)) !== 0,
        documentation: checker.getDocumentationCommentOfSymbol(target),
        hasExample: checker.getJsDocTagsOfSymbol(target).some((tag) => tag.name === "example"),
      };
    });
  }

  /** Every `any` that stands for a type, as `file:line`. */
  anyTypes(): readonly string[] {
    return this.files().flatMap((file) => {
      const found: string[] = [];
      const visit = (node: Node): void => {
        if (node.kind === SyntaxKind.AnyKeyword) {
          found.push(`${relative(this.#root, file.fileName)}:${file.getLineAndCharacterOfPosition(node.end).line + 1}`);
        }
        node.forEachChild(visit);
      };
      visit(file);
      return found;
    });
  }

  close(): void {
    this.#api.close();
  }
}

function fileOf(symbol: Sym): string {
  return symbol.declarations[0]?.path ?? "";
}
