// What HPAs were, as the server has seen them and the adapter has noted before, for the trends.

const MOST = 200;
const POINTS = 780;
const PATIENCE = 10_000;

/**
 * @typedef {{time: number[], value: (number|null)[], goal: (number|null)[], current: (number|null)[], desired: (number|null)[]}} Series
 */

/** Keeps the series of the HPAs that were looked at last. */
export class History {
  /** @param {() => void} onChange */
  constructor(onChange) {
    this.onChange = onChange;
    /** @type {Map<string, Series>} */
    this.series = new Map();
    /** @type {Set<string>} */
    this.wanted = new Set();
    this.asking = false;
    /** Milliseconds until the next question; more after one without an answer. */
    this.wait = 50;
    this.time = 0;
  }

  /** Return a series, and ask for it if it is unknown. @param {string} key @returns {Series|undefined} */
  get(key) {
    const known = this.series.get(key);
    if (!known) {
      this.wanted.add(key);
      if (!this.asking) {
        this.asking = true;
        setTimeout(() => this.ask(), this.wait);
      }
    }
    return known;
  }

  /** Forget everything, because data were missed. */
  forget() {
    this.wait = 50;
    this.series.clear();
    this.onChange();
  }

  async ask() {
    const keys = [...this.wanted].slice(-MOST);
    this.wanted.clear();
    try {
      const query = new URLSearchParams(keys.map((key) => ["hpa", key]));
      const answer = await fetch(`/api/history?${query}`, { cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      const found = await answer.json();
      this.wait = 50;
      for (const key of keys) this.keep(key, found[key] ?? { time: [], value: [], goal: [], current: [], desired: [] });
    } catch {
      this.wait = PATIENCE;
      // The trends stay empty until the next look; the connection says that it is lost.
    }
    this.asking = false;
    this.onChange();
  }

  keep(key, series) {
    this.series.delete(key);
    this.series.set(key, series);
    while (this.series.size > MOST) this.series.delete(/** @type {string} */ (this.series.keys().next().value));
  }

  /** Add the values of a round. @param {any[]} hpas @param {number} time */
  add(hpas, time) {
    if (time <= this.time) return;
    this.time = time;
    for (const hpa of hpas) {
      const series = this.series.get(`${hpa.namespace}/${hpa.name}`);
      if (!series || time <= (series.time.at(-1) ?? 0)) continue;
      const metric = leading(hpa);
      series.time.push(time);
      series.value.push(metric?.value ?? null);
      series.goal.push(metric?.goal ?? null);
      series.current.push(hpa.current ?? null);
      series.desired.push(hpa.desired ?? null);
      if (series.time.length > POINTS) for (const list of Object.values(series)) list.shift();
    }
  }
}

/** The metric that the trend shows: the one that asks for most. @param {any} hpa @returns {any} */
export function leading(hpa) {
  return hpa.metrics[0];
}

/** The part of a series since a time. @param {Series} series @param {number} since @returns {Series} */
export function recent(series, since) {
  let first = series.time.findIndex((time) => time >= since);
  if (first < 0) first = series.time.length;
  return /** @type {any} */ (Object.fromEntries(Object.entries(series).map(([key, list]) => [key, list.slice(first)])));
}
