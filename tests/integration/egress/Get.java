/* SPDX-License-Identifier: MIT */
/* A Java client that knows nothing of proxies: prints what the URL answers. */
import java.net.URL;

public class Get {
	public static void main(String[] args) throws Exception {
		try (var in = new URL(args[0]).openStream()) {
			System.out.write(in.readAllBytes());
			System.out.flush();
		}
	}
}
