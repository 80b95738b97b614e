import type { Attack } from './attack.ts'
import { batches } from './batches.ts'
import { contentEncoding } from './content-encoding.ts'
import { pipelining } from './pipelining.ts'
import { unfinishedBodies } from './unfinished-bodies.ts'
import { unreadAnswers } from './unread-answers.ts'

/** The attacks that `npm run attack` runs: the first four at the same time, then the others. */
export const attacks: readonly Attack[] = [
  pipelining,
  unreadAnswers,
  batches,
  unfinishedBodies,
  contentEncoding,
]
