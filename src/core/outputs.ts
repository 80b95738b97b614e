import type { z } from 'zod'
import type { Log } from '../log/log.ts'

/** What declares an answer: an RPC method, or a REST route. */
type Declared = { readonly output?: z.ZodType | undefined }

/** Compares answers with the output that their method or route declares. */
export type Outputs = {
  /** Strict: throws where the result breaks the declaration. Else looks at a sample, and counts. */
  check(declared: Declared, name: string, result: unknown): void
  /** How many broken results the sample held so far, by method or route. */
  broken(): ReadonlyMap<string, number>
}

/** A start shows what is broken always; from then on one answer in so many shows what is broken at times. */
const firstChecked = 20
const oneIn = 1000

const issuesShown = 5

export function createOutputs(isStrict: boolean, log: Log): Outputs {
  const seen = new Map<Declared, number>()
  const broken = new Map<string, number>()
  const count = (name: string, flaw: string): void => {
    const before = broken.get(name) ?? 0
    broken.set(name, before + 1)
    if (before === 0)
      log.error({ method: name, flaw }, 'a result breaks its declared output; further ones are only counted')
  }
  return {
    check(declared, name, result) {
      if (isStrict) {
        const flaw = flawOf(declared, result)
        if (flaw) throw new Error(`The result of ${name} breaks its declared output: ${flaw}`)
        return
      }
      const nth = seen.get(declared) ?? 0
      seen.set(declared, nth + 1)
      if (nth >= firstChecked && nth % oneIn !== 0) return
      const flaw = flawOf(declared, result)
      if (flaw) count(name, flaw)
    },
    broken: () => broken,
  }
}

/** Where the result breaks the schema and which rule, never what it holds. */
function flawOf({ output }: Declared, result: unknown): string | undefined {
  if (!output) return undefined
  try {
    const parsed = output.safeParse(result)
    if (parsed.success) return undefined
    return parsed.error.issues
      .slice(0, issuesShown)
      .map(({ path, code }) => `${path.join('.') || 'result'}: ${code}`)
      .join(', ')
  } catch (error) {
    return `its schema cannot be asked: ${(error as Error).message}`
  }
}
