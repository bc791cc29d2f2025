// Holds the write lock of a file until it is told to let go.

import { openConnection } from "./sqlite-connection.js";
import { nextLine } from "./sqlite-line.js";

const file = process.argv[2]!;
const connection = await openConnection(file);
connection.exec("BEGIN EXCLUSIVE");
process.stdout.write("locked\n");
await nextLine();
connection.exec("COMMIT");
connection.close();
process.stdout.write("released\n");
