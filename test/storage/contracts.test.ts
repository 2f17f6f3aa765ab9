import { catalogContract } from "../contracts/catalog.ts";
import { itemsContract } from "../contracts/items.ts";
import { cronsContract } from "../contracts/crons.ts";
import { journalContract } from "../contracts/journal.ts";
import { outboxContract } from "../contracts/outbox.ts";
import { inMemory, onLevel } from "./support.ts";

journalContract("LevelDB", onLevel, { reopen: true, sync: true });
journalContract("memory", inMemory, { reopen: true, sync: true });
outboxContract("LevelDB", onLevel, { reopen: true, sync: true });
outboxContract("memory", inMemory, { reopen: true, sync: true });
catalogContract("LevelDB", onLevel, { reopen: true });
catalogContract("memory", inMemory, { reopen: true });
itemsContract("LevelDB", onLevel);
itemsContract("memory", inMemory);
cronsContract("LevelDB", onLevel);
cronsContract("memory", inMemory);
