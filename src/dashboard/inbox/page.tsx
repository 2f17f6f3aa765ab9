import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { getThread } from "../api/client.ts";
import type { ApiInterrupt, JsonRecord } from "../api/records.ts";
import {
  currentLocation,
  hrefOf,
  pageNumberOf,
  replaceQuery,
  runHref,
  threadHref,
} from "../app/page-location.ts";
import { isNotFound } from "../api-errors.ts";
import { runAction, showFailure, showNotice } from "../app/notices.ts";
import { EmptyState, ErrorAlert, Loading } from "../components/empty-state.tsx";
import { JoinedTexts } from "../components/joined-texts.tsx";
import { Age } from "../components/age.tsx";
import { idSuffix } from "../components/one-line-text.ts";
import { useKeyPress } from "../components/use-key-press.ts";
import { useResource } from "../components/use-resource.ts";
import {
  AlreadyAnsweredError,
  type AnswerRefusalReason,
  answerRefusalOf,
  type AnswerSubmission,
  findAnsweringRun,
  isResponseLost,
  readPendingQuestions,
  answerRefusalFromText,
  sendAnswers,
  waitForAnswerOutcome,
} from "../live/answer-requests.ts";
import { awaitedEventTypes, questionLine } from "../threads/event-answer.tsx";
import { InterruptAnswers } from "../threads/interrupt-answers.tsx";
import { type RunningTimer, NextMachineTimer } from "../threads/machine-timers.tsx";
import { graphNameOf, threadTitle } from "../threads/thread-title.ts";
import { LostResponseNote } from "./lost-response-note.tsx";
import { type InboxRow, InboxSubscription, INBOX_PAGE_SIZE } from "./inbox-subscription.ts";

/** The hint that lists the keys of this page. */
const SHORTCUTS = [
  "Enter sends a text",
  "Ctrl Enter sends any answer",
  "Shift Enter starts a new line",
  "Esc leaves the field, then closes the question",
  "j ↓ next",
  "k ↑ previous",
  "? all shortcuts",
];

/**
 * The pending questions and breakpoints of all threads, longest wait first. The user answers the questions on this
 * page.
 */
export function InboxPage() {
  // The number in the address is counted from 1.
  const page = pageNumberOf(currentLocation.value.query, 1);
  const isTurned = useRef(false);
  return (
    <QuestionList
      key={page}
      page={page}
      isTurned={isTurned.current}
      onTurn={(number) => {
        isTurned.current = true;
        replaceQuery({ page: number });
      }}
    />
  );
}

interface QuestionListProps {
  /** The number of the page, counted from 0. */
  readonly page: number;
  /** Whether the user has come to this page with a button for the next or the previous page. */
  readonly isTurned: boolean;
  readonly onTurn: (number: number) => void;
}

/** The questions on one page of the inbox. */
function QuestionList({ page, isTurned, onTurn }: QuestionListProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  // The focused button has been removed together with the previous page, so the heading gets the focus.
  useEffect(() => {
    if (isTurned) heading.current?.focus();
  }, []);
  const list = useMemo(() => new InboxSubscription(page), [page]);
  useEffect(() => () => list.close(), [list]);
  const [chosen, setChosen] = useState<InboxRow | null>(null);
  /**
   * Whether the first field of the answer gets the focus when the chosen row is opened; if false, the row's summary
   * gets it.
   */
  const takesFocus = useRef(false);
  /** Whether this page itself has opened the chosen row, and the user has not used the list since. */
  const isUntouched = useRef(false);
  /** The index of the chosen row. If somebody else answers its question, the row stays at this index. */
  const place = useRef(0);
  /**
   * The keys of the rows answered on this page, each with `updated_at` of its thread before the answer. If a question
   * is listed again and its thread has a later time, the answer was refused and the question is pending again.
   */
  const [answered, setAnswered] = useState<ReadonlyMap<string, string>>(new Map());
  const box = useRef<HTMLOListElement>(null);
  const waiting = (list.rows.value ?? []).filter(
    ({ key, thread }) => answered.get(key) !== thread.updated_at,
  );
  const at = waiting.findIndex(({ key }) => key === chosen?.key);
  if (at >= 0) place.current = at;
  // A chosen row stays when its question is no longer listed, unless this page itself has chosen it.
  const isGone = chosen !== null && at < 0 && !isUntouched.current;
  const rows = isGone ? waiting.toSpliced(place.current, 0, chosen) : waiting;
  const total = list.total.value;
  const pages = Math.ceil(total / INBOX_PAGE_SIZE);
  /** The rows and the chosen row of the latest rendering, for callbacks that are called later. */
  const shown = useRef({ rows, chosen });
  shown.current = { rows, chosen };
  /** The keys of the rows that were listed when the chosen row was chosen. */
  const listed = useRef<ReadonlySet<string>>(new Set());
  /**
   * Opens a row. `into`: whether the row's summary or the first field of the answer gets the focus. The fields are
   * rendered only after the question has been read, and then take the focus.
   */
  const choose = (row: InboxRow | undefined, into: "summary" | "field") => {
    takesFocus.current = into === "field";
    isUntouched.current = false;
    setChosen(row ?? null);
    listed.current = new Set(shown.current.rows.map(({ key }) => key));
    requestAnimationFrame(() => {
      const { current: list } = box;
      // The fields of the answer may already be rendered and have the focus.
      const hasFocus = list?.querySelector(".open")?.contains(document.activeElement) === true;
      if (list !== null && !hasFocus && canTakeFocus(list)) focusSummary(list);
    });
  };
  const move = (by: number) => {
    const from = rows.findIndex(({ key }) => key === chosen?.key);
    // The summary gets the focus, so that the next `j` or `k` moves again. In a field, it would be typed.
    choose(rows[Math.max(0, Math.min(rows.length - 1, from + by))], "summary");
  };
  const isRead = list.rows.value !== null;
  useEffect(() => {
    if (!isRead || page > 0 || isTurned) return;
    const oldest = rows.find(canBeAnswered);
    if (oldest === undefined) return;
    choose(oldest, "field");
    isUntouched.current = true;
  }, [isRead]);
  const isLeft = chosen !== null && at < 0 && isUntouched.current;
  useEffect(() => {
    if (isLeft) setChosen(null);
  }, [isLeft]);
  useKeyPress((key) => {
    if (key === "j" || key === "ArrowDown") move(1);
    else if (key === "k" || key === "ArrowUp") move(-1);
    else if (key === "Escape") choose(undefined, "summary");
    else return false;
    return true;
  });
  /** Called when an answer has been accepted, with the row for which it was sent. */
  const done = ({ key, thread }: InboxRow) => {
    const now = shown.current;
    const from = now.rows.findIndex((row) => row.key === key);
    setAnswered((before) => new Map(before).set(key, thread.updated_at));
    if (now.chosen?.key === key) {
      // A question that was asked meanwhile, such as the next one of the same thread, is opened only if there is no
      // other.
      const next = now.rows.slice(from + 1).find((row) => listed.current.has(row.key));
      choose(next ?? now.rows[from - 1] ?? now.rows[from + 1], "field");
    }
    list.refresh();
  };
  return (
    <article class="page inbox">
      <header class="head">
        <div class="which">
          <h1 ref={heading} tabIndex={-1}>
            Inbox {list.rows.value !== null && <span class="count">{total.toLocaleString("en")}</span>}
          </h1>
          <p class="dim">Threads waiting for an answer or to be resumed, the longest wait first.</p>
        </div>
        <p class="dim keys">{SHORTCUTS.join(" · ")}</p>
      </header>
      {list.error.value !== null && <ErrorAlert text={list.error.value} onRetry={() => list.refresh()} />}
      {list.rows.value === null ? (
        list.error.value === null && <Loading isPadded />
      ) : rows.length === 0 ? (
        <EmptyState title={page === 0 ? "No questions waiting" : "No more questions"}>
          {page > 0 ? (
            <a href={hrefOf(["inbox"])}>First page</a>
          ) : (
            <p class="dim">
              A node asks with <code>ctx.interrupt</code> (in LangGraph.js: <code>interrupt</code>); its
              question appears here automatically.
            </p>
          )}
        </EmptyState>
      ) : (
        <ol
          ref={box}
          class="questions"
          aria-label="Open questions"
          onPointerDown={() => (isUntouched.current = false)}
          onInput={() => (isUntouched.current = false)}
          onKeyDown={({ key, target }) => {
            isUntouched.current = false;
            if (key === "Escape" && isField(target) && box.current !== null) focusSummary(box.current);
          }}
        >
          {rows.map((row) => (
            <Row
              key={row.key}
              row={row}
              description={list.descriptionOf(row)}
              timer={list.nextTimerOf(row)}
              isOpen={row.key === chosen?.key}
              isGone={isGone && row.key === chosen.key}
              takesFocus={() => takesFocus.current}
              onToggle={() => choose(row.key === chosen?.key ? undefined : row, "field")}
              onAnswered={() => done(row)}
            />
          ))}
        </ol>
      )}
      {pages > 1 && (
        <nav class="bar pages" aria-label="Pages">
          <button type="button" disabled={page === 0} onClick={() => onTurn(page)}>
            Previous
          </button>
          <span class="dim">
            page {page + 1} of {pages.toLocaleString("en")}
          </span>
          <button type="button" disabled={page + 1 >= pages} onClick={() => onTurn(page + 2)}>
            Next
          </button>
        </nav>
      )}
    </article>
  );
}

/**
 * Returns whether a person can answer a row on this page. False if the thread waits at a breakpoint, or if a machine
 * waits for a timer.
 */
const canBeAnswered = ({ question }: InboxRow): boolean =>
  question !== null && awaitedEventTypes(question)?.length !== 0;

const isField = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName);

/**
 * Returns whether an element of the page may take the focus. False while the user types outside of it, or while a
 * dialog is open.
 */
function canTakeFocus(part: HTMLElement): boolean {
  const { activeElement } = document;
  if (activeElement === null || part.contains(activeElement)) return true;
  return !isField(activeElement) && activeElement.closest("dialog") === null;
}

function focusSummary(list: HTMLElement): void {
  list.querySelector<HTMLElement>('.summary[aria-expanded="true"]')?.focus();
}

/** Selectors for what an answer is entered with: fields, and buttons except those that choose the input method. */
const FIELDS = ["textarea", "input", "select", '[role="group"]:not([aria-label="How to answer"]) button'];

/**
 * Scrolls to a row whose answer is rendered, and focuses the first field of the answer, except on touch screens, where the
 * keyboard would cover the question.
 */
function focusField(row: HTMLElement | null): void {
  if (row === null || !canTakeFocus(row)) return;
  row.scrollIntoView({ block: "nearest" });
  if (matchMedia("(pointer: coarse)").matches) return;
  // Not in the question of a machine, which is no child of a form: its buttons send at once.
  row.querySelector<HTMLElement>(FIELDS.map((field) => `form > .question ${field}`).join())?.focus();
}

interface RowProps {
  readonly row: InboxRow;
  /** The description of the thread, as in the list of threads; empty if it has none. */
  readonly description: string;
  /** The next timer of the machine that asks, if there is one. */
  readonly timer: RunningTimer | undefined;
  readonly isOpen: boolean;
  /** Whether the row's question is no longer listed on this page. */
  readonly isGone: boolean;
  /** Returns whether the first field of the answer gets the focus when it is rendered. */
  readonly takesFocus: () => boolean;
  readonly onToggle: () => void;
  readonly onAnswered: () => void;
}

function Row({ row, description, timer, isOpen, isGone, takesFocus, onToggle, onAnswered }: RowProps) {
  const item = useRef<HTMLLIElement>(null);
  /** Whether the user has entered something. The form then stays rendered, hidden, while another row is open. */
  const [isEntered, setEntered] = useState(false);
  const { thread, question } = row;
  const { thread_id: id, state_updated_at } = thread;
  const text =
    question === null
      ? "Paused (no question)"
      : questionLine(question.value, 400).replaceAll(/\*\*|`/g, "") || "Question without text";
  const title = threadTitle(thread);
  // A thread without a title has the name of its graph as title, which is then shown once.
  const others = new Set([description, graphNameOf(thread.metadata) ?? title]);
  others.delete(title);
  others.delete("");
  return (
    <li ref={item} class={`card ${isOpen ? "open" : ""}`}>
      <button type="button" class="summary" aria-expanded={isOpen} onClick={onToggle}>
        <span class={`text ${question === null ? "dim" : ""}`}>{text}</span>
        <span class="wait">
          <Age since={state_updated_at} />
        </span>
      </button>
      <p class="from dim">
        <strong>{title}</strong>
        {others.size > 0 && " · "}
        <JoinedTexts texts={[...others]} /> · <a href={threadHref(id)}>thread …{idSuffix(id)}</a>
        {timer !== undefined && (
          <>
            {" · "}
            <NextMachineTimer timer={timer} />
          </>
        )}
      </p>
      {isOpen && question === null && (
        <p>
          The thread is paused at a breakpoint, or its state was edited.{" "}
          <a href={threadHref(id)}>Open thread to resume</a>
        </p>
      )}
      {(isOpen || isEntered) && question !== null && (
        <div hidden={!isOpen} onInput={() => setEntered(true)}>
          <Answer
            row={row}
            question={question}
            isOpen={isOpen}
            isGone={isGone}
            onReady={() => takesFocus() && focusField(item.current)}
            onAnswered={onAnswered}
          />
        </div>
      )}
      {isEntered && !isOpen && <p class="dim">Unsent answer</p>}
    </li>
  );
}

interface AnswerProps {
  readonly row: InboxRow;
  readonly question: ApiInterrupt;
  readonly isOpen: boolean;
  readonly isGone: boolean;
  /** Called when the form is rendered in an open row. */
  readonly onReady: () => void;
  readonly onAnswered: () => void;
}

/**
 * The form for the answer to a question. If somebody else answers first, the form stays with what the user has
 * entered.
 */
function Answer({ row, question, isOpen, isGone, onReady, onAnswered }: AnswerProps) {
  const { thread_id: id, metadata, state_updated_at: since } = row.thread;
  const [refused, setRefused] = useState<AlreadyAnsweredError | null>(null);
  const [isDeleted, setDeleted] = useState(false);
  const [isSending, setSending] = useState(false);
  /** The latest answers, by the ids of their questions, if the request with them got no response; otherwise null. */
  const [unconfirmed, setUnconfirmed] = useState<JsonRecord | null>(null);
  const questions = useResource(() => readPendingQuestions(id, [question.id]), [id]);
  const refusal = useMemo(
    () => answerRefusalFromText(questions.value?.refusalText ?? null),
    [questions.value],
  );
  useEffect(() => {
    // What became of an unconfirmed answer is read below.
    if (!isGone || isSending || isDeleted || refused !== null || unconfirmed !== null) return;
    const check = async () => {
      const { interrupts } = await getThread(id);
      // The question is still pending, but has moved to the previous page, because an older question was answered.
      if (Object.values(interrupts).some((list) => list.some((one) => one.id === question.id))) return;
      setRefused(new AlreadyAnsweredError(await findAnsweringRun(id, [question.id], since)));
    };
    check().catch((cause: unknown) => {
      if (isNotFound(cause)) setDeleted(true);
      else setRefused(new AlreadyAnsweredError(undefined));
    });
  }, [isGone, isSending, unconfirmed]);
  const { response_schema = null } = questions.value?.list.find((one) => one.id === question.id) ?? {};
  const isRead = questions.value !== undefined || questions.error !== null;
  useEffect(() => {
    if (isRead && isOpen) onReady();
  }, [isRead, isOpen]);
  const assistant = [metadata["assistant_id"], metadata["graph_id"]].find((one) => typeof one === "string");
  const send = async (answers: JsonRecord): Promise<AnswerSubmission> => {
    let refusal: AnswerRefusalReason | null = null;
    let isAccepted = false;
    setSending(true);
    setUnconfirmed(null);
    await runAction(async () => {
      try {
        const run = await sendAnswers(id, String(assistant), answers, since);
        const asked = [{ ...question, response_schema }];
        // If the run cannot be read, the answer was sent all the same.
        const outcome = await waitForAnswerOutcome(run, asked).catch(() => null);
        refusal = answerRefusalFromText(outcome?.refusalText ?? null);
        if (refusal === null) {
          const link = { text: "Open run", href: runHref(id, run.run_id) };
          if (outcome?.hasFailed === true) showFailure("Answer sent, but the run failed.", link);
          else showNotice("Answer sent.", link);
        }
      } catch (cause) {
        refusal = answerRefusalOf(cause);
        if (refusal !== null) return;
        if (isResponseLost(cause)) {
          setUnconfirmed(answers);
          return;
        }
        if (!(cause instanceof AlreadyAnsweredError)) throw cause;
        setRefused(cause);
        return;
      }
      if (refusal !== null) return;
      isAccepted = true;
      onAnswered();
    });
    setSending(false);
    return refusal ?? (isAccepted ? "accepted" : "failed");
  };
  if (!isRead) return <Loading />;
  return (
    <>
      {isDeleted && (
        <div class="note" role="alert">
          <span>The thread was deleted.</span>
          <button type="button" onClick={onAnswered}>
            Next question
          </button>
        </div>
      )}
      {unconfirmed !== null && refused === null && !isDeleted && (
        <LostResponseNote
          thread={id}
          answers={unconfirmed}
          askedAt={since}
          onOther={(run) => setRefused(new AlreadyAnsweredError(run))}
          onNext={onAnswered}
        />
      )}
      {refused !== null && (
        <div class="note" role="alert">
          <span>
            {refused.message}
            {refused.run !== undefined && (
              <>
                , <Age since={refused.run.created_at} isAgo />
              </>
            )}
            .
          </span>
          {refused.run !== undefined && <a href={runHref(id, refused.run.run_id)}>Open run</a>}
          <button type="button" onClick={onAnswered}>
            Next question
          </button>
        </div>
      )}
      <InterruptAnswers
        questions={[{ ...question, response_schema }]}
        graph={graphNameOf(metadata)}
        isClosed={refused !== null || isDeleted}
        refusal={refusal}
        onAnswer={send}
      />
    </>
  );
}
