import { createServer } from 'node:http'
import Provider from 'oidc-provider'

/** A real OpenID provider as a process of its own; prints its issuer. Its sign-in page takes any name and password. */
const server = createServer()
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: 'cellkeep-test',
        client_secret: 'client-secret-of-the-test',
        redirect_uris: [process.argv[2]],
      },
    ],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'preferred_username'] },
    // In the ID token too, not only at the userinfo endpoint.
    conformIdTokenClaims: process.argv[3] === 'conform',
    findAccount: (_context, sub) => ({
      accountId: sub,
      claims: () => ({
        sub,
        email: `${sub}@corp.example`,
        email_verified: true,
        name: `Name of ${sub}`,
        preferred_username: sub,
      }),
    }),
    pkce: { required: () => true },
    cookies: { keys: ['a key of the test provider'] },
  })
  server.on('request', provider.callback())
  console.log(issuer)
})
