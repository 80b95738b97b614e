import type { Attack } from './attack.ts'
import { batches } from './batches.ts'
import { pipelining } from './pipelining.ts'
import { unfinishedBodies } from './unfinished-bodies.ts'
import { unreadAnswers } from './unread-answers.ts'

/** The attacks that `npm run attack` runs, all at the same time. */
export const attacks: readonly Attack[] = [pipelining, unreadAnswers, batches, unfinishedBodies]
