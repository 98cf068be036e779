/**
 * The key by which this browser signs in again after a reload: an ECDSA key that no script can read, in IndexedDB.
 *
 * Where the browser offers neither (private windows of some), the page works without, and a reload signs it out.
 */
interface Stored {
  signIn: string;
  key: CryptoKey;
}

export interface NewKey {
  /** SubjectPublicKeyInfo in base64. */
  readonly publicKey: string;
  readonly privateKey: CryptoKey;
}

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256" };
const DATABASE = "handrail";
const STORE = "keys";
const ENTRY = "sign-in";

export async function createKey(): Promise<NewKey | null> {
  try {
    const pair = await crypto.subtle.generateKey(ALGORITHM, false, ["sign"]);
    const spki = await crypto.subtle.exportKey("spki", pair.publicKey);
    return { publicKey: base64(spki), privateKey: pair.privateKey };
  } catch {
    return null;
  }
}

export async function storeKey(signIn: string, key: CryptoKey): Promise<void> {
  await quietly(async () => {
    await run("readwrite", (store) => store.put({ signIn, key } satisfies Stored, ENTRY));
  });
}

export async function loadKey(): Promise<Stored | null> {
  return (await quietly(() => run<Stored | undefined>("readonly", (store) => store.get(ENTRY)))) ?? null;
}

/** Only if it is still the key of this sign-in: another tab may have stored a newer one. */
export async function dropKey(signIn: string): Promise<void> {
  if ((await loadKey())?.signIn === signIn) {
    await quietly(async () => {
      await run("readwrite", (store) => store.delete(ENTRY));
    });
  }
}

export async function signChallenge({ signIn, key }: Stored, nonce: string): Promise<string> {
  const text = new TextEncoder().encode(`handrail sign-in\n${signIn}\n${nonce}`);
  return base64(await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, key, text));
}

/** What the list of sign-ins calls this browser. */
export function browserName(agent = navigator.userAgent): string {
  const browser = [/Edg\//, /OPR\//, /Firefox\//, /Chrome\//, /Safari\//].findIndex((pattern) => pattern.test(agent));
  const system = /Windows|Mac OS X|Android|iPhone|iPad|Linux/.exec(agent)?.[0]?.replace("Mac OS X", "macOS");
  const name = ["Edge", "Opera", "Firefox", "Chrome", "Safari"][browser] ?? "Browser";
  return system ? `${name} on ${system}` : name;
}

function base64(bytes: ArrayBuffer): string {
  return btoa(String.fromCharCode(...new Uint8Array(bytes)));
}

async function quietly<Result>(work: () => Promise<Result>): Promise<Result | null> {
  try {
    return await work();
  } catch {
    return null;
  }
}

async function run<Result>(mode: IDBTransactionMode, work: (store: IDBObjectStore) => IDBRequest): Promise<Result> {
  const database = await settle<IDBDatabase>(open());
  try {
    return await settle<Result>(work(database.transaction(STORE, mode).objectStore(STORE)));
  } finally {
    database.close();
  }
}

function open(): IDBOpenDBRequest {
  const request = indexedDB.open(DATABASE, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(STORE);
  return request;
}

function settle<Result>(request: IDBRequest): Promise<Result> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result as Result);
    request.onerror = () => reject(request.error ?? new Error("IndexedDB"));
  });
}
