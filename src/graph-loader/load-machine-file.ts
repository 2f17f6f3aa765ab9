import { currentMachineOf } from "../machines/exported-machine.ts";
import type { Machine } from "../machines/xstate-types.ts";
import { parseModuleExport } from "../config/config.ts";
import { ServiceError } from "../model/errors.ts";
import { loadModule } from "./load-export.ts";
import { exportNamed, exportNames, type LoadOptions } from "./load-graphs.ts";

/**
 * Loads a machine from `FILE` or `FILE:name`. Without a name, the file must export exactly one machine. Of an export with several versions
 * of a machine, the current one is loaded.
 * @throws ServiceError `config.invalid`
 */
export async function loadMachineFile(
  text: string,
  directory: string,
  options: LoadOptions,
): Promise<{ readonly file: string; readonly machine: Machine }> {
  const refuse = (what: string, cause?: unknown): never => {
    throw new ServiceError("config.invalid", what, { cause });
  };
  const { file, name } = parseModuleExport(text, directory, (what) => refuse(`FILE ${what}`));
  const module = await loadModule(file, directory, options, refuse);
  const machines = exportNames(module).filter(
    (one) => currentMachineOf(exportNamed(module, one)) !== undefined,
  );
  const has = `it has ${machines.length === 0 ? "no machine" : `the machines ${machines.join(", ")}`}`;
  if (text.endsWith(`:${name}`)) {
    const found = currentMachineOf(exportNamed(module, name));
    return found !== undefined
      ? { file, machine: found }
      : refuse(`${file} exports no machine "${name}"; ${has}`);
  }
  const distinct = new Set(machines.map((one) => currentMachineOf(exportNamed(module, one)) as Machine));
  const [machine] = distinct;
  if (machine === undefined) return refuse(`${file} exports no XState machine`);
  if (distinct.size > 1) return refuse(`${has.replace("it", file)}; name one: ${text}:${machines[0]}`);
  return { file, machine };
}
