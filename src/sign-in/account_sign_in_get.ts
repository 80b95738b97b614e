import { z } from 'zod'
import { holdsAnyOf } from '../auth/active-grant.ts'
import { isStrongEnough } from '../auth/fresh.ts'
import { hasPassword } from '../auth/password.ts'
import { secondFactorActive } from '../auth/ways-in.ts'
import { query } from '../core/declare.ts'
import { sql } from '../db/db.ts'
import { Passkey } from '../passkeys/passkeys.ts'
import { Uuid } from '../wire/types.ts'

const SignIn = z.object({
  password: z.boolean(),
  second_factor: z.object({ active: z.boolean(), required: z.boolean() }),
  totp: z.object({ confirmed_at: z.string(), last_used_at: z.string().nullable() }).nullable(),
  recovery_codes_left: z.int(),
  passkeys: z.array(Passkey),
  links: z.array(
    z.object({
      id: Uuid,
      provider: z.string(),
      label: z.string(),
      created_at: z.string(),
      last_used_at: z.string().nullable(),
    }),
  ),
  session: z
    .object({
      methods: z.array(z.string()),
      authenticated_at: z.string(),
      fresh_until: z.string(),
      strong: z.boolean(),
    })
    .nullable(),
})

export const account_sign_in_get = query({
  doc: 'How the caller’s account signs in: password, second factors, passkeys, providers, and what this session has proven.',
  auth: { account: 'required', actor: 'none' },
  before_enrolment: true,
  output: SignIn,
  errors: ['account_vanished'],
  async handler(_input, { app, account, credential, db, fail }) {
    const { require_second_factor, fresh_seconds } = app.config
    const session_id = credential.type === 'session' ? credential.id : null
    const own = sql`account_id = account.id`
    const found = await db.first<z.output<typeof SignIn>>(sql`
      select ${hasPassword} as password,
        json_build_object('active', ${secondFactorActive(sql`account.id`)},
          'required', ${holdsAnyOf(sql`account.id`, require_second_factor)}) as second_factor,
        (select json_build_object('confirmed_at', iso_timestamp(confirmed_at), 'last_used_at', iso_timestamp(last_used_at))
          from account_totp where ${own} and confirmed_at is not null) as totp,
        (select count(*) from account_recovery_code where ${own}) as recovery_codes_left,
        coalesce((select json_agg(json_build_object('id', id, 'name', name, 'created_at', iso_timestamp(created_at),
            'last_used_at', iso_timestamp(last_used_at), 'device', device, 'backed_up', backed_up,
            'first_factor', first_factor, 'second_factor', second_factor) order by created_at, id)
          from account_passkey where ${own}), '[]') as passkeys,
        coalesce((select json_agg(json_build_object('id', id, 'provider', provider,
            'created_at', iso_timestamp(created_at), 'last_used_at', iso_timestamp(last_used_at)) order by provider)
          from account_link where ${own}), '[]') as links,
        (select json_build_object('methods', methods, 'authenticated_at', iso_timestamp(authenticated_at),
            'fresh_until', iso_timestamp(authenticated_at + case
              when ${isStrongEnough}
              then ${fresh_seconds}::int * interval '1 second' else interval '0' end),
            'strong', strong)
          from auth_session s where id = ${session_id} and ${own}) as session
      from account where id = ${account.id}::uuid and deleted_at is null`)
    if (!found) throw fail('account_vanished')
    const label = (provider: string): string => app.registry.providers.get(provider)?.label ?? provider
    return { ...found, links: found.links.map((link) => ({ ...link, label: label(link.provider) })) }
  },
})
