// Reads declaration files with the compiler's own eyes. TypeScript calls this interface of its unstable; the lock file pins it.

import { writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { type Node, type SourceFile, SyntaxKind } from "typescript/unstable/ast";
import {
  isClassDeclaration,
  isExpressionWithTypeArguments,
  isTypeQueryNode,
  isTypeReferenceNode,
} from "typescript/unstable/ast/is";
import { API, type Project, type Symbol as Sym, SymbolFlags } from "typescript/unstable/sync";
import { ROOT } from "./packing.js";

/** One name that an entry point exports. */
export interface Exported {
  readonly name: string;
  /** Where it is declared. */
  readonly file: string;
  /** What its TSDoc comment says, tags apart. Empty: there is none. */
  readonly documentation: string;
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
      const target = this.#declared(symbol);
      return {
        name: symbol.name,
        file: relative(this.#root, fileOf(target)),
        documentation: checker.getDocumentationCommentOfSymbol(target),
      };
    });
  }

  /**
   * Types that the exports of these entry points mention and that none of them exports, as `Type (mentioned by …)`. A
   * class may extend what is not exported: nobody needs to name it.
   */
  unexported(entryFiles: readonly string[]): readonly string[] {
    const { checker, program } = this.#project;
    const modules = entryFiles.map((file) => checker.getSymbolAtLocation(program.getSourceFile(file)!)!);
    const exported = new Map(
      modules
        .flatMap((module) => checker.getExportsOfModule(module))
        .map((symbol) => this.#declared(symbol))
        .map((symbol) => [symbol.id, symbol]),
    );
    const found = [...exported.values()].flatMap((symbol) => {
      const names = symbol.declarations.flatMap((declaration) => typeNamesIn(declaration.resolve(this.#project)!));
      return checker
        .getSymbolAtLocation(names)
        .filter((mentioned) => mentioned !== undefined)
        .map((mentioned) => this.#declared(mentioned))
        .filter(({ id, flags }) => !exported.has(id) && (flags & SymbolFlags.TypeParameter) === 0)
        .filter((mentioned) => fileOf(mentioned).startsWith(this.#root))
        .map((mentioned) => `${mentioned.name} (mentioned by ${symbol.name})`);
    });
    return [...new Set(found)];
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

  /** What stands behind an import or a re-export. */
  #declared(symbol: Sym): Sym {
    return symbol.flags & SymbolFlags.Alias ? this.#project.checker.getAliasedSymbol(symbol) : symbol;
  }
}

/** The names of all types that a declaration mentions. */
function typeNamesIn(declaration: Node): Node[] {
  const names: Node[] = [];
  const visit = (node: Node): void => {
    if (isTypeReferenceNode(node)) names.push(node.typeName);
    if (isTypeQueryNode(node)) names.push(node.exprName);
    if (isExpressionWithTypeArguments(node) && !isClassDeclaration(declaration)) names.push(node.expression);
    node.forEachChild(visit);
  };
  visit(declaration);
  return names;
}

function fileOf(symbol: Sym): string {
  return symbol.declarations[0]?.path ?? "";
}
