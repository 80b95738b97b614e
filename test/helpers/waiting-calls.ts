/** Calls that stop in their hook, where their cell is locked: those whose data says `wait`, until they are let go. */
export function waitingCalls() {
  let gate = { entered: () => {}, opened: Promise.resolve() }
  return {
    hooks: {
      async validateData(_kind: string | null, data: Record<string, unknown>) {
        if (!data.wait) return data
        gate.entered()
        await gate.opened
        return data
      },
    },
    /** Begins a call; resolves when it holds its locks, which it does until `open` is called. */
    held: async <T>(call: () => Promise<T>): Promise<{ open(): void; answer: Promise<T> }> => {
      const [entered, opened] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      gate = { entered: entered.resolve, opened: opened.promise }
      const answer = call()
      await entered.promise
      return { open: opened.resolve, answer }
    },
  }
}
