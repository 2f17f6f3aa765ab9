import { Fragment } from "preact";

interface JoinedTextsProps {
  readonly texts: readonly string[];
  readonly separator?: string;
}

/**
 * Shows texts in a row. Each is isolated, so that letters that are read from right to left, or a character that turns
 * the direction, do not reorder the texts beside it.
 */
export function JoinedTexts({ texts, separator = " · " }: JoinedTextsProps) {
  return (
    <>
      {texts.map((text, index) => (
        <Fragment key={index}>
          {index > 0 && separator}
          <bdi>{text}</bdi>
        </Fragment>
      ))}
    </>
  );
}
