import { z } from 'zod'
import { operation } from '../core/operation.ts'
import { NodeId, want } from './want.ts'

export const drainNode = operation({
  doc: 'Drain a node: balancers and live connections leave it, and it still answers requests.',
  input: z.strictObject({ node_id: NodeId }),
  event: 'node_drain',
  errors: ['node_not_found'],
  handler: ({ node_id }, work) => want('drain', node_id, work),
})
