import { catalogContract } from "../contracts/catalog.ts";
import { journalContract } from "../contracts/journal.ts";
import { inMemory, onLevel } from "./support.ts";

journalContract("LevelDB", onLevel, { reopen: true, sync: true });
journalContract("memory", inMemory, { reopen: true, sync: true });
catalogContract("LevelDB", onLevel, { reopen: true });
catalogContract("memory", inMemory, { reopen: true });
