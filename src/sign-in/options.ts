import { z } from 'zod'
import { hasTotp } from '../config/second-factor.ts'
import { route } from '../core/route.ts'
import { hasRecovery } from '../recovery/reset-link.ts'
import { isSignupOpen } from '../settings/settings.ts'

/** `GET /options`: what a sign-in page has to offer. */
export const options = route({
  doc: 'What this service offers before a sign-in: signup, recovery, passkeys, providers.',
  method: 'GET',
  path: '/options',
  auth: { account: 'none', actor: 'none' },
  checksOrigin: true,
  output: z.object({
    signup: z.enum(['off', 'invite', 'open']),
    invite_claim: z.enum(['match', 'code', 'verified_email']),
    recovery: z.boolean(),
    passkeys: z.boolean(),
    second_factor: z.boolean(),
    password_min: z.int(),
    providers: z.array(z.object({ id: z.string(), label: z.string() })),
  }),
  async handler(_input, { app }) {
    const { config, registry } = app
    const isOpen = config.signup && (await isSignupOpen(app.db))
    const signup: 'off' | 'invite' | 'open' = !config.signup ? 'off' : isOpen ? 'open' : 'invite'
    return {
      body: {
        signup,
        invite_claim: config.invite_claim,
        recovery: hasRecovery(config),
        passkeys: config.passkeys,
        second_factor: hasTotp(config),
        password_min: config.password_min,
        providers: [...registry.providers.values()].map(({ id, label }) => ({ id, label })),
      },
    }
  },
})
