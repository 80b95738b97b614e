import { z } from 'zod'
import { operation } from '../core/operation.ts'
import { NodeId, want } from './want.ts'

export const resumeNode = operation({
  doc: 'End the draining of a node.',
  input: z.strictObject({ node_id: NodeId }),
  event: 'node_resume',
  errors: ['node_not_found'],
  handler: ({ node_id }, work) => want('run', node_id, work),
})
