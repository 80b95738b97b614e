/** Calls whose data says `wait` stop in their hook until they are released; a large cell is locked meanwhile. */
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
    /** Starts a call; resolves when it is in its hook, where it stays until `open` is called. */
    held: async <T>(call: () => Promise<T>): Promise<{ open(): void; answer: Promise<T> }> => {
      const [entered, opened] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      gate = { entered: entered.resolve, opened: opened.promise }
      const answer = call()
      await entered.promise
      return { open: opened.resolve, answer }
    },
  }
}
