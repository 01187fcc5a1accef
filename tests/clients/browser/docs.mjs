// The docs page in a real browser: node docs.mjs BASE_URL [SCREENSHOT]
// Operations are listed, "Try it out" works, and nothing is requested from another host.
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.REFRAME_BROWSER_MODULES}/`);
const { chromium } = require("playwright-core");

const [base, screenshot] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 1000 } });
  const requested = [];
  const wrong = [];
  page.on("request", (request) => requested.push(request.url()));
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("console", (message) => message.type() === "error" && wrong.push(message.text()));

  await page.goto(`${base}/docs`);
  await page.waitForSelector(".opblock", { timeout: 20000 }).catch((error) => {
    throw new Error(`no operation is listed; the console has ${JSON.stringify(wrong)}: ${error.message}`);
  });
  const listed = await page.$$eval(".opblock-summary-path", (paths) => paths.map((path) => path.textContent.replaceAll("\u200b", "")));
  for (const path of ["/v1/chat/completions", "/v1/responses", "/v1/completions", "/v1/models", "/metrics", "/openapi.json"]) {
    assert.ok(listed.includes(path), `${path} is not listed: ${listed.join(" ")}`);
  }

  const tryOut = async (id) => {
    const block = page.locator(`[id$="${id}"]`).first();
    await block.locator(".opblock-summary-control").click();
    await block.locator(".try-out__btn").click();
    await block.locator(".execute").click();
    const live = block.locator(".live-responses-table");
    await live.waitFor();
    return { block, status: (await live.locator(".response-col_status").last().textContent()).trim().slice(0, 3), text: await live.textContent() };
  };

  const models = await tryOut("get_v1_models");
  assert.equal(models.status, "200");
  assert.match(models.text, /"id":\s*"demo"/);

  const chat = await tryOut("post_v1_chat_completions");
  assert.equal(chat.status, "200");
  assert.match(chat.text, /chat\.completion\.chunk/);
  assert.match(chat.text, /\[DONE\]/);

  assert.deepEqual(wrong, [], "the console of the page");
  const elsewhere = requested.filter((url) => !url.startsWith(base) && !url.startsWith("data:"));
  assert.deepEqual(elsewhere, [], "requested from another host");
  if (screenshot) {
    await page.evaluate(() => window.scrollTo(0, 0));
    await page.screenshot({ path: screenshot });
  }
  console.log(`${listed.length} operations listed; /v1/models and a chat request answered from the page`);
} finally {
  await browser.close();
}
