import { z } from 'zod'
import { query } from '../../src/core/declare.ts'
import type { AuthSpec } from '../../src/core/method.ts'

/** The caller as the handler sees it. */
export const Who = z.object({
  account: z.string().nullable(),
  actor: z.string().nullable(),
  roles: z.array(z.string()),
})

/** A method with these axes that returns its caller; its only input is an integer `n`. */
export const who = (auth: AuthSpec) =>
  query({
    doc: 'Answers who the handler takes the caller for.',
    auth: auth as Pick<AuthSpec, 'account' | 'actor'>,
    input: z.strictObject({ n: z.int().optional() }),
    output: Who,
    handler: async (_input, { account, actor, role_grants }) => ({
      account: account?.id ?? null,
      actor: actor?.id ?? null,
      roles: role_grants.map(({ role }) => role),
    }),
  })
