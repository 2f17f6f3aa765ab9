/** Where an export of the project, such as a graph, is found: the file and the name of the export. */
export interface ModuleExport {
  /** Absolute path of the file. */
  readonly file: string;
  readonly name: string;
}
