// The connection to the server: events in, and what to say when there are none.

const PARTS = ["about", "panels", "verdict", "gpus", "load", "pods", "workloads", "hpas", "timeline", "idle", "past", "pools"];
/** The server sends at least a comment every 15 s, but a comment is not seen here: an answer to a question is. */
const RETRY = [1000, 2000, 5000, 10000];

/** Reads the events, and connects again when they end. */
export class Stream {
  /**
   * @param {(name: string, value: any) => void} onPart
   * @param {() => void} onChange called when the state changed
   */
  constructor(onPart, onChange) {
    this.onPart = onPart;
    this.onChange = onChange;
    /** @type {"connecting"|"live"|"lost"|"refused"} */
    this.state = "connecting";
    this.tries = 0;
    this.timer = 0;
    addEventListener("online", () => this.again(0));
    this.open();
  }

  open() {
    this.source?.close();
    const source = new EventSource("/api/events");
    this.source = source;
    source.onopen = () => {
      this.tries = 0;
      this.become("live");
    };
    source.onerror = () => {
      // The browser connects again by itself, with the last id, but not after an error status.
      if (source.readyState === EventSource.CLOSED) this.refused();
      else this.become("lost");
    };
    for (const name of PARTS) {
      source.addEventListener(name, (event) => {
        this.onPart(name, JSON.parse(/** @type {MessageEvent} */ (event).data));
        if (this.state !== "live") this.become("live");
      });
    }
  }

  async refused() {
    let status = 0;
    try {
      status = (await fetch("/", { method: "HEAD", cache: "no-store" })).status;
    } catch {
      // The server does not answer.
    }
    this.become(status === 403 ? "refused" : "lost");
    this.again(RETRY[Math.min(this.tries++, RETRY.length - 1)]);
  }

  /** @param {number} wait milliseconds */
  again(wait) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      if (this.source?.readyState === EventSource.CLOSED) this.open();
    }, wait);
  }

  /** @param {"connecting"|"live"|"lost"|"refused"} state */
  become(state) {
    this.state = state;
    this.onChange();
  }
}
