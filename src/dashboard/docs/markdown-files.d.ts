/** Markdown files are bundled as their text. */
declare module "*.md" {
  const text: string;
  export default text;
}
