/**
 * A browser opens six connections to one server, for all its windows together, and a stream holds one as long as it lasts.
 * So streams take turns: three at a time, and one that has been open for a second gives way to one that waits.
 */
(function (RP) {
  "use strict";

  const PLACES = ["radix-stream-1", "radix-stream-2", "radix-stream-3"];
  const TURN = 1000;

  const sleep = (ms, gone) =>
    new Promise((done) => {
      const end = () => {
        clearTimeout(timer);
        gone.removeEventListener("abort", end);
        done();
      };
      const timer = setTimeout(end, ms);
      gone.addEventListener("abort", end);
    });

  /** The place with the fewest who hold it or wait for it. */
  async function shortest() {
    const { held, pending } = await navigator.locks.query();
    const crowd = (place) => [...held, ...pending].filter((lock) => lock.name === place).length;
    return PLACES.reduce((best, place) => (crowd(place) < crowd(best) ? place : best));
  }

  /** Hold a place until the caller has gone, or somebody waits for it at the end of a turn. */
  async function hold(place, gone) {
    let wanted = false;
    while (!gone.aborted && !wanted) {
      await sleep(TURN, gone);
      wanted = (await navigator.locks.query()).pending.some((lock) => lock.name === place);
    }
  }

  /** Call `start`, which returns how to stop, whenever it is our turn; returns how to leave for good. */
  RP.takeTurns = (start) => {
    if (!navigator.locks) return start();
    const leaving = new AbortController();
    const gone = leaving.signal;
    let stop = () => {};
    (async () => {
      while (!gone.aborted) {
        const place = await shortest();
        await navigator.locks
          .request(place, { signal: gone }, async () => {
            if (gone.aborted) return;
            stop = start();
            await hold(place, gone);
            stop();
          })
          .catch((error) => {
            if (!gone.aborted) throw error;
          });
      }
    })();
    return () => {
      leaving.abort();
      stop();
    };
  };
})(globalThis.RadixPlayer);
