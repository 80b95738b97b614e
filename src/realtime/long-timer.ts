/** The longest delay of a Node timer; a longer one fires at once. */
const longest = 2 ** 31 - 1

/** Runs `act` at a time, however distant; the returned function cancels. Doesn't keep the process alive. */
export function at(time: string, act: () => void): () => void {
  const due = Date.parse(time)
  let timer: NodeJS.Timeout
  const wait = (): void => {
    const left = due - Date.now()
    timer = setTimeout(() => (left > longest ? wait() : act()), Math.min(Math.max(left, 0), longest)).unref()
  }
  wait()
  return () => clearTimeout(timer)
}
