/** Where an export of a project's file is found, such as a graph. */
export interface ExportLocation {
  /** Absolute path of the file. */
  readonly file: string;
  readonly name: string;
}
