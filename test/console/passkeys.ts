import type { Page } from 'playwright-core'
import type { TestOptions, TestService } from '../../src/testing/index.ts'
import { localhost } from '../helpers/localhost.ts'
import { consoleService } from './browser.ts'

/** The service with the pages and the console at http://localhost, as passkeys need a name. */
export async function serviceOnLocalhost(options: TestOptions = {}): Promise<TestService> {
  const { url, leadTo } = await localhost()
  const test = await consoleService({ public_url: url, ...options })
  leadTo(test.url)
  return { ...test, url }
}

/** Gives the browser of a page a device with a check of its user, which succeeds while `isUser`. */
export async function addDevice(page: Page) {
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('WebAuthn.enable')
  const { authenticatorId } = await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
  return {
    isUser: (isUserVerified: boolean) =>
      devtools.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified }),
  }
}
