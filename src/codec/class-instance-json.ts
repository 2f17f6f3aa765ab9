import { ClassInstance, NonJsonValue, type NonJsonContent } from "../model/non-json-data.ts";

/**
 * Where one instance is in the data, and what it is: the class name of a {@link ClassInstance}, or the content of a {@link NonJsonValue}
 * without its data. That data stays in the plain value, as the member `data` of the object at `path`.
 */
type InstanceMark = readonly [path: readonly (string | number)[], content: string | NonJsonContent];

/**
 * Writes a value with {@link ClassInstance} or {@link NonJsonValue} instances as JSON text: an array with two items, the value as plain
 * data and the list of its instances, inner instances first. Returns undefined if the value has no instances.
 */
export function toInstanceText(value: unknown): string | undefined {
  const marks: InstanceMark[] = [];
  const plain = withoutInstances(value, [], marks);
  return marks.length === 0 ? undefined : JSON.stringify([plain, marks]);
}

function withoutInstances(
  value: unknown,
  path: readonly (string | number)[],
  marks: InstanceMark[],
): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item, i) => withoutInstances(item, [...path, i], marks));
  if (value instanceof NonJsonValue) {
    const { kind, data } = NonJsonValue.of(value);
    const plain = withoutInstances(data, [...path, "data"], marks);
    marks.push([path, { kind, data: null } as unknown as NonJsonContent]);
    return { data: plain };
  }
  const members = Object.entries(value).map(([key, member]) => [
    key,
    withoutInstances(member, [...path, key], marks),
  ]);
  if (value instanceof ClassInstance) marks.push([path, ClassInstance.kindOf(value)]);
  return Object.fromEntries(members);
}

/** Reads the value that {@link toInstanceText} wrote. */
export function fromInstanceText(text: string): unknown {
  const [plain, marks] = JSON.parse(text) as [unknown, InstanceMark[]];
  const root = { value: plain };
  for (const [path, content] of marks) {
    let holder: { [key: string | number]: unknown } = root;
    let last: string | number = "value";
    for (const key of path) {
      holder = holder[last] as typeof holder;
      last = key;
    }
    const found = holder[last];
    const made =
      typeof content === "string"
        ? new ClassInstance(content, found as object)
        : new NonJsonValue({ ...content, data: (found as { data: never }).data });
    Object.defineProperty(holder, last, {
      value: made,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return root.value;
}
