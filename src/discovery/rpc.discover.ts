import { z } from 'zod'
import { query } from '../core/declare.ts'
import { openRpc } from './openrpc.ts'

const OpenRpc = z.looseObject({
  openrpc: z.literal('1.3.2'),
  info: z.looseObject({ title: z.string(), version: z.string() }),
  methods: z.array(z.looseObject({ name: z.string() })),
})

export const discover = query({
  doc: 'This service as an OpenRPC document: every method with its input, output, reasons, access, limiters and an example. It is the same for every caller.',
  auth: { account: 'none', actor: 'none' },
  rate_limit: 'ip',
  rate_limit_group: 'discovery',
  enabled: ({ openrpc }) => openrpc === 'public',
  output: OpenRpc,
  handler: async (_input, { app }) => openRpc(app) as unknown as z.output<typeof OpenRpc>,
})
