// The types of postgres-server.mjs, for tests in TypeScript.

export interface StartOptions {
  /** Whether a commit waits for the disk. If not, an immediate stop may lose the last ones. @default false */
  readonly durable?: boolean;
  /** @default a free one */
  readonly port?: number;
  /** Where the data is to lie: an empty folder, or none yet. It goes with the server. @default in a temp folder */
  readonly dataDir?: string;
  /** Server settings by name; they win over those of this script. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Takes connections over TLS only, as hosted databases do. @default false */
  readonly tls?: boolean;
}

/** What the words mean: PostgreSQL's documentation, "Shutting Down the Server". */
export type StopMode = "smart" | "fast" | "immediate";

export interface PostgresServer {
  /** With user and password. The user is a superuser. */
  readonly url: string;
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly dataDir: string;
  /** What a client must trust. Null: the server speaks no TLS. */
  readonly certificate: string | null;
  /** Null while it is stopped. */
  readonly pid: number | null;
  /** Resolves when it has ended. @default "fast" */
  stop(mode?: StopMode): Promise<void>;
  /** Again, on the same data and the same port. */
  start(): Promise<void>;
  /** Stops it and deletes all of it. */
  close(): Promise<void>;
  /** The last lines of its log. */
  tail(): string;
}

export type OpenedPostgres =
  | { readonly kind: "started"; readonly url: string; readonly server: PostgresServer; close(): Promise<void> }
  /** Somebody else's, from DUROXIDE_PG_URL: nobody here stops it. */
  | { readonly kind: "given"; readonly url: string; close(): Promise<void> }
  | { readonly kind: "missing"; readonly reason: string };

/** Why no server can be started here, or null if one can. */
export function postgresAvailable(): string | null;

/** Resolves when it takes connections. Rejects with the end of its log where it cannot be started. */
export function startPostgres(options?: StartOptions): Promise<PostgresServer>;

/** The server of DUROXIDE_PG_URL if that is set, else one of our own, else the reason why there is none. */
export function openPostgres(options?: StartOptions): Promise<OpenedPostgres>;
