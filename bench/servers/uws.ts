/**
 * Control: a bare uWebSockets server with a constant response. `POST /events/:count/:size` responds with a stream of
 * that many `custom` events, written as fast as the client reads them.
 */
import { App, us_socket_local_port, type HttpResponse } from "uWebSockets.js";
import { CONSTANT_JSON, customEvent } from "./bodies.ts";
import { ownStats, reportOver } from "./report.ts";

/** The number of events in one `write`: Heddle, too, writes several events at once. */
const EVENTS_PER_WRITE = 64;

function sendEvents(res: HttpResponse, count: number, size: number): void {
  const state = { over: false, id: 0 };
  /** Writes the next events. Returns true if there are more and the socket accepts them now. */
  const piece = (): boolean => {
    if (state.over) return false;
    let text = "";
    for (const upTo = Math.min(count, state.id + EVENTS_PER_WRITE); state.id < upTo; state.id++) {
      text += customEvent(state.id, size);
    }
    state.over = state.id >= count;
    let good = true;
    res.cork(() => {
      if (state.over) res.end(text);
      else good = res.write(text);
    });
    return good && !state.over;
  };
  const pump = () => {
    while (piece());
    return true;
  };
  res.onAborted(() => {
    state.over = true;
  });
  res.onWritable(pump);
  res.cork(() => {
    res.writeHeader("content-type", "text/event-stream");
  });
  pump();
}

const app = App();
app.get("/*", (res) => {
  res.writeHeader("content-type", "application/json").end(CONSTANT_JSON);
});
app.post("/events/:count/:size", (res, req) => {
  const count = Number(req.getParameter(0));
  const size = Number(req.getParameter(1));
  res.onData((_, last) => {
    if (last) sendEvents(res, count, size);
  });
  res.onAborted(() => undefined);
});
app.post("/*", (res) => {
  res.onAborted(() => undefined);
  res.onData((_, last) => {
    if (last)
      res.cork(() => {
        res.writeHeader("content-type", "application/json").end(CONSTANT_JSON);
      });
  });
});
app.listen("127.0.0.1", 0, (socket) => {
  if (socket === false) throw new Error("cannot listen");
  reportOver(us_socket_local_port(socket), ownStats, () => undefined);
});
