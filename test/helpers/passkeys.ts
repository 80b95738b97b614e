import type { TestAccount, TestService } from '../../src/testing/index.ts'
import { type Reply, send } from './account-routes.ts'
import { Authenticator, type Forged } from './authenticator.ts'

const origin = 'http://localhost:4040'
/** Passkeys for the pages of this origin. */
export const onLocalhost = { public_url: origin } as const

export const device = (traits?: ConstructorParameters<typeof Authenticator>[1]) =>
  new Authenticator(origin, traits)

type Options = Parameters<Authenticator['create']>[0] & Parameters<Authenticator['get']>[0]

/** Adds a passkey of the device to an account. */
export async function addPasskey(
  { client }: Pick<TestAccount, 'client'>,
  authenticator: Authenticator,
  { second_factor = false, ...forged }: Forged & { second_factor?: boolean } = {},
) {
  const { options } = await client.account_passkey_register_begin({ second_factor })
  return await client.account_passkey_register_finish({
    response: authenticator.create(options as unknown as Options, forged),
  })
}

/** Begins to sign in; resolves to the options, and the cookies to finish with. */
export async function beginPasskey(test: Pick<TestService, 'url'>, cookie?: string) {
  const { json, cookie: flow } = await send(test, 'POST /passkey_begin', { body: {}, cookie })
  const cookies = [cookie, flow].filter(Boolean).join('; ')
  return { options: json?.options as Options, cookie: cookies }
}

/** Signs in with the newest passkey of the device. */
export async function signInWith(
  test: Pick<TestService, 'url'>,
  authenticator: Authenticator,
  forged?: Forged,
): Promise<Reply> {
  const { options, cookie } = await beginPasskey(test)
  const response = authenticator.get(options, forged)
  return await send(test, 'POST /passkey_finish', { body: { response }, cookie })
}
