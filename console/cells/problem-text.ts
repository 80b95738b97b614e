import { cells } from '../copy/cells.ts'
import type { Problem } from '../lib/json-check.ts'

/** What is wrong with data, in words. */
export function problemText(problem: Problem): string {
  switch (problem.kind) {
    case 'expected':
      return cells.expected[problem.what]
    case 'not_object':
      return cells.not_object
    case 'kind_inside':
      return cells.kind_inside
    case 'duplicate_key':
      return cells.duplicate_key(problem.text)
    case 'unsafe_number':
      return cells.unsafe_number(problem.text)
    case 'too_large':
      return cells.too_large(problem.size)
    case 'too_deep':
      return cells.too_deep
  }
}
