import { expect, it } from 'vitest'
import { freshIp, send } from '../../test/helpers/account-routes.ts'
import type { Forged } from '../../test/helpers/authenticator.ts'
import { addPasskey, beginPasskey, device, onLocalhost } from '../../test/helpers/passkeys.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import type { TestAccount } from '../testing/index.ts'

const test = await serviceForFile({
  ...onLocalhost,
  trusted_proxies: ['127.0.0.1'],
  limit_login_ip: 'off',
  limit_credential: 'off',
})

const login = ({ username }: TestAccount, password: string, ip: string) =>
  send(test, 'POST /login', { body: { username, password }, ip })

async function again(cookie: string, phone: ReturnType<typeof device>, ip: string, forged?: Forged) {
  const begun = await beginPasskey(test, cookie)
  const body = { passkey: phone.get(begun.options, forged) }
  return await send(test, 'POST /reauthenticate', { body, cookie: begun.cookie, ip })
}

it('an address that has signed in to the account is not kept from its passkey by wrong passwords from elsewhere', async () => {
  const [ada, phone, home] = [await test.account(), device(), freshIp()]
  await addPasskey(ada, phone)
  const cookie = (await login(ada, ada.password, home)).cookie as string
  for (let i = 0; i < 10; i++) await login(ada, 'wrong', freshIp())
  expect((await again(cookie, phone, freshIp())).status).toBe(429)
  expect((await again(cookie, phone, home)).status).toBe(200)
})

it('wrong responses and wrong passwords share a budget, which a right response clears', async () => {
  const [ada, phone, ip] = [await test.account(), device(), freshIp()]
  await addPasskey(ada, phone)
  for (let i = 0; i < 9; i++)
    expect((await again(ada.cookie, phone, ip, { uv: false })).status, `${i}`).toBe(401)
  const cookie = (await again(ada.cookie, phone, ip)).cookie as string
  for (let i = 0; i < 9; i++) expect((await login(ada, 'wrong', freshIp())).status).toBe(401)
  expect((await again(cookie, phone, ip)).status).toBe(200)
})
