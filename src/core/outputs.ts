import type { z } from 'zod'
import type { Log } from '../log/log.ts'
import type { Observer } from '../observe/observer.ts'
import { resultValue } from '../wire/json-text.ts'

/** Whatever declares an output: an RPC method or a REST route. */
type Declared = { readonly output?: z.ZodType | undefined }

/** Compares results with the output that their method or route declares. */
export type Outputs = {
  /** Strict: throws if the result breaks the declaration. Otherwise checks a sample and counts what breaks. */
  check(declared: Declared, name: string, result: unknown): void
}

/** The first results reveal permanent faults; after that, a sample reveals occasional ones. */
const firstChecked = 20
const oneIn = 1000

const issuesShown = 5

export function createOutputs(isStrict: boolean, log: Log, observer: Observer): Outputs {
  const seen = new Map<Declared, number>()
  const logged = new Set<string>()
  const count = (name: string, flaw: string): void => {
    observer.count('output_flaws_total')
    if (logged.has(name)) return
    logged.add(name)
    log.error(
      { event: 'output_flaw', method: name, flaw },
      'a result breaks its declared output; further ones are only counted',
    )
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
  }
}

/** Which rules of the schema the result breaks and where, without any value of the result. */
function flawOf({ output }: Declared, result: unknown): string | undefined {
  if (!output) return undefined
  try {
    const parsed = output.safeParse(resultValue(result))
    if (parsed.success) return undefined
    return parsed.error.issues
      .slice(0, issuesShown)
      .map(({ path, code }) => `${path.join('.') || 'result'}: ${code}`)
      .join(', ')
  } catch (error) {
    return `its schema threw: ${(error as Error).message}`
  }
}
